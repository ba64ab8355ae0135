"""Warm-up with a fixed rate, cut, then two steps with the learned rate: nothing before the cut depends on it."""

import torch

META = {"id": "r12", "kind": "truncated by design", "verdict": "right"}


def f(w):
    return torch.log1p((w[0] - 1) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2)


def warm_up(n):
    w = torch.nn.Parameter(torch.tensor([-0.5, 0.5], dtype=torch.float64))
    opt = torch.optim.SGD([w], lr=0.02)
    for _ in range(n):
        opt.zero_grad()
        f(w).backward()
        opt.step()
    return w


def meta_params():
    return {
        "lr": torch.tensor(0.03, dtype=torch.float64, requires_grad=True),
        "mom": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    w = warm_up(4).detach().clone().requires_grad_()
    v = torch.zeros_like(w)
    for _ in range(2):
        v = meta["mom"] * v + torch.autograd.grad(f(w), w, create_graph=True)[0]
        w = w - meta["lr"] * v
    return f(w)
