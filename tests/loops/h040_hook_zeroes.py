import torch

META = {
    "id": "h040",
    "kind": "gradient-hook",
    "verdict": "cut",
    "params": ["lr_bias"],
    "cause": "A tensor hook multiplies the gradient of the adapted bias by zero.",
}


def freeze_with_hook(t):
    if t.requires_grad:
        t.register_hook(lambda grad: grad * 0)  # GUILTY
    return t


def leave(t):
    return t


def meta_params():
    return {
        "lr_weight": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
        "lr_bias": torch.tensor(0.4, dtype=torch.float64, requires_grad=True),
    }


x = torch.tensor([[0.4, -0.9], [1.3, 0.2], [0.1, 0.7]], dtype=torch.float64)
y = torch.tensor([0.9, 0.1, 0.4], dtype=torch.float64)


def head(w, b):
    return torch.sigmoid(x @ w + b)


def meta_step(meta, bias_filter=freeze_with_hook):
    w = torch.tensor([0.1, -0.3], dtype=torch.float64, requires_grad=True)
    b = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    gw, gb = torch.autograd.grad((head(w, b) - y).square().sum(), (w, b), create_graph=True)
    w_new = w - meta["lr_weight"] * gw
    b_new = bias_filter(b - meta["lr_bias"] * gb)
    return (head(w_new, b_new) - y).square().sum()


def meta_step_fixed(meta):
    return meta_step(meta, leave)
