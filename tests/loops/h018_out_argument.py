import torch

META = {
    "id": "h018",
    "kind": "inplace-out-argument",
    "verdict": "raises",
    "cause": "torch.sub(..., out=workspace) does not support autograd.",
}

H = torch.diag(torch.tensor([1.0, 4.0, 9.0], dtype=torch.float64))


def quad(w):
    return torch.log1p(w @ H @ w)


def meta_params():
    return {"gamma": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def descend(gamma, n, preallocate):
    w = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64, requires_grad=True)
    workspace = [torch.empty(3, dtype=torch.float64) for _ in range(n)]
    for i in range(n):
        (g,) = torch.autograd.grad(quad(w), [w], create_graph=True)
        if preallocate:
            w = torch.sub(w, gamma * g, out=workspace[i])  # GUILTY
        else:
            w = torch.sub(w, gamma * g)
    return quad(w)


def meta_step(meta):
    return descend(meta["gamma"], 3, True)


def meta_step_fixed(meta):
    return descend(meta["gamma"], 3, False)
