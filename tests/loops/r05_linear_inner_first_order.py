"""The inner loss is linear in the weights: its gradient is constant, so create_graph is not needed."""

import torch

META = {"id": "r05", "kind": "first order is exact", "verdict": "right"}

cost = torch.tensor([0.3, -1.1, 0.7], dtype=torch.float64)


def inner_loss(p):
    return cost @ p


def meta_params():
    return {"lr": torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    p = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        g = torch.autograd.grad(inner_loss(p), p)[0]
        p = p - meta["lr"] * g
    return torch.logsumexp(p, 0) + p.pow(2).sum()
