import torch

META = {
    "id": "h109",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "torch._foreach_sub_ updates the whole weight list in place.",
}

x = torch.tensor([[0.3, -0.8], [1.0, 0.5], [-0.4, 0.1]], dtype=torch.float64)
y = torch.tensor([[0.1], [0.7], [-0.2]], dtype=torch.float64)


def forward(ws, h):
    *hidden, last = ws
    for w in hidden:
        h = torch.sigmoid(h @ w)
    return h @ last


def objective(ws):
    return (forward(ws, x) - y).pow(2).mean()


def fused_sgd(ws, gs, lr):
    torch._foreach_sub_(ws, torch._foreach_mul(gs, lr))  # GUILTY
    return ws


def plain_sgd(ws, gs, lr):
    return [w - lr * g for w, g in zip(ws, gs)]


def meta_params():
    return {"lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, sgd=fused_sgd):
    g = torch.Generator().manual_seed(51)
    leaves = [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in ((2, 3), (3, 3), (3, 1))]
    ws = [l.clone() for l in leaves]
    for _ in range(3):
        ws = sgd(ws, list(torch.autograd.grad(objective(ws), ws, create_graph=True)), meta["lr"])
    return objective(ws)


def meta_step_fixed(meta):
    return meta_step(meta, plain_sgd)
