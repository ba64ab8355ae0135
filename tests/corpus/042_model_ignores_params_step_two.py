"""forward(x, params=None) drops params in one place: step 1 works (None), step 2 differentiates w.r.t. tensors the
forward never used.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "Failed on adaptation when step is 2",
    "source": "https://github.com/tristandeleu/pytorch-meta/issues/91",
    "kind": "module-ignores-params",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()


def loss(out):
    return ((out - Y) ** 2).mean()


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = net()

    def forward(self, x, params=None):
        return self.body(x)  # GUILTY


def meta_step(meta):
    m, p = M(), None
    for _ in range(2):
        src = list(m.parameters()) if p is None else p
        gs = torch.autograd.grad(loss(m(X, p)), src, create_graph=True)
        p = [w - meta["lr"] * g for w, g in zip(src, gs)]
    return loss(m(X, p))


def meta_step_fixed(meta):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(2):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))
