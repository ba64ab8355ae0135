import torch

META = {
    "id": "h090",
    "kind": "nan-softmax-mask",
    "verdict": "nan",
    "cause": "A query whose keys are all masked gets softmax of a row of -inf.",
}

q = torch.tensor([[0.3, 1.0], [-0.2, 0.5], [0.8, -0.4]], dtype=torch.float64)
causal = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 1, 0]], dtype=torch.bool)


def attend(W, x, mask, fill):
    s = (x @ W) @ x.T
    s = s.masked_fill(~mask, fill)  # ALSO
    return torch.softmax(s, -1) @ x


def loss(W, fill):
    return (attend(W, q, causal, fill) - q.roll(-1, 0)).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.7, dtype=torch.float64, requires_grad=True)}


def run(lr, fill):
    W = torch.eye(2, dtype=torch.float64).requires_grad_()
    for _ in range(2):
        (g,) = torch.autograd.grad(loss(W, fill), W, create_graph=True)
        W = W - lr * g
    return loss(W, fill)


def meta_step(meta):
    return run(meta["lr"], fill=float("-inf"))  # GUILTY


def meta_step_fixed(meta):
    return run(meta["lr"], fill=-30.0)
