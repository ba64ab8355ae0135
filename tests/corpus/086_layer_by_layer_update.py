"""Layers are updated one after the other inside one graph: once layer 0 is a function of layer 2's weight (through its
inner gradient), the next inner gradient w.r.t. that weight is a total derivative, not the partial one SGD wants.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "no public report",
    "source": None,
    "kind": "inner-gradient-sees-update",
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


def unroll(meta, at_once):
    m = net()
    p = dict(m.named_parameters())
    f = lambda: loss(functional_call(m, p, (X,)))
    for names in [list(p)] if at_once else [["0.weight", "0.bias"], ["2.weight", "2.bias"]]:
        gs = torch.autograd.grad(f(), [p[k] for k in names], create_graph=True)  # GUILTY
        p.update({k: p[k] - meta["lr"] * g for k, g in zip(names, gs)})
    return f()


def meta_step(meta):
    return unroll(meta, False)


def meta_step_fixed(meta):
    return unroll(meta, True)
