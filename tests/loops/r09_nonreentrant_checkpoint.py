import torch
from torch.utils.checkpoint import checkpoint

META = {"id": "r09", "kind": "checkpoint non-reentrant", "verdict": "right"}


def block(h, w):
    return torch.tanh(h @ w) + 0.5 * h


def net(ws, x):
    h = x
    for w in ws:
        h = checkpoint(block, h, w, use_reentrant=False)
    return h.sum(1)


def meta_params():
    return {"lr": torch.tensor([0.05, 0.1], dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    x = torch.tensor([[0.4, -0.1], [1.0, 0.7], [-0.6, 0.3]], dtype=torch.float64)
    y = torch.tensor([0.1, 1.2, -0.4], dtype=torch.float64)
    ws = [
        torch.eye(2, dtype=torch.float64).mul(0.8).requires_grad_(),
        torch.ones(2, 2, dtype=torch.float64).mul(0.3).requires_grad_(),
    ]
    for _ in range(2):
        g = torch.autograd.grad((net(ws, x) - y).pow(2).mean(), ws, create_graph=True)
        ws = [w - r * gi for w, r, gi in zip(ws, meta["lr"], g)]
    return (net(ws, x) - y).abs().mean()
