import torch

META = {
    "id": "h038",
    "kind": "clip-detached-norm",
    "verdict": "wrong",
    "cause": "The clipping factor is made from norm.item(), so the dependence of the scale on the weights is lost.",
}


def global_norm(gs):
    return torch.sqrt(sum(g.pow(2).sum() for g in gs))


def clipped(gs, limit, number=True):
    n = global_norm(gs)
    if number:
        n = n.item()  # GUILTY
    coef = limit / max(n, limit) if number else limit / torch.clamp(n, min=limit)
    return [coef * g for g in gs]


I = torch.tensor([[[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]], [[0.5, 0.5, 2.0], [1.0, 0.0, 1.0]]], dtype=torch.float64)
J = torch.tensor([[3.0, -2.0], [1.0, 4.0]], dtype=torch.float64)


def loss(W, b):
    return (torch.einsum("nij,j->ni", I, torch.sinh(W)) + b - J).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def solve(lr, number):
    W = torch.tensor([0.5, -0.4, 0.2], dtype=torch.float64, requires_grad=True)
    b = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        gW, gb = clipped(torch.autograd.grad(loss(W, b), (W, b), create_graph=True), 1.0, number)
        W = W - lr * gW
        b = b - lr * gb
    return loss(W, b)


def meta_step(meta):
    return solve(meta["lr"], True)


def meta_step_fixed(meta):
    return solve(meta["lr"], False)
