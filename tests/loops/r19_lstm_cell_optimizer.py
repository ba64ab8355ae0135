"""A learned optimiser with an LSTM cell; the detach on its inputs costs nothing, because the inner gradient is constant."""

import torch
from torch import nn

META = {"id": "r19", "kind": "LSTM cell learned optimiser", "verdict": "right"}

N_H = 3
cost = torch.tensor([0.4, -0.8, 1.2, 0.1], dtype=torch.float64)


def meta_params():
    torch.manual_seed(30)
    cell = nn.LSTMCell(1, N_H).double()
    d = {n: p.detach().clone().requires_grad_() for n, p in cell.named_parameters()}
    d["head"] = torch.randn(N_H, dtype=torch.float64).mul(0.2).requires_grad_()
    return d


class Opt:
    def __init__(self, meta):
        self.cell = nn.LSTMCell(1, N_H).double()
        self.p = {k: v for k, v in meta.items() if k != "head"}
        self.head = meta["head"]
        self.h = self.c = torch.zeros(4, N_H, dtype=torch.float64)

    def __call__(self, g):
        self.h, self.c = torch.func.functional_call(self.cell, self.p, (g.detach()[:, None], (self.h, self.c)))
        return self.h @ self.head


def meta_step(meta):
    opt = Opt(meta)
    w = torch.tensor([0.5, 0.5, -0.5, 1.0], dtype=torch.float64, requires_grad=True)
    total = 0.0
    for _ in range(3):
        (g,) = torch.autograd.grad(cost @ w, w)
        w = w + opt(g)
        total = total + (w**2).sum() + cost @ w
    return total
