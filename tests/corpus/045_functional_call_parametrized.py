"""With weight_norm the real parameters are parametrizations.weight.original0/1; assigning the key 'weight' runs the
parametrization's setter, which writes numbers into the originals in place: the graph of the value is lost and the
saved originals have moved.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "Support parametrized modules in functional_call",
    "source": "https://github.com/pytorch/pytorch/pull/186565",
    "kind": "functional-call-wrong-dict",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


def net():
    torch.manual_seed(0)
    return nn.utils.parametrizations.weight_norm(nn.Linear(2, 1).double())


def loss(o):
    return ((o - Y) ** 2).mean()


def meta_step(meta):
    m = net()
    w, b = m.weight.detach().requires_grad_(), m.bias
    gw, gb = torch.autograd.grad(loss(X @ w.T + b), (w, b), create_graph=True)
    return loss(functional_call(m, {"weight": w - meta["lr"] * gw}, (X,)))  # GUILTY


def meta_step_fixed(meta):
    m = net()
    p = {k: v for k, v in m.named_parameters()}
    gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
    return loss(functional_call(m, {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}, (X,), strict=True))
