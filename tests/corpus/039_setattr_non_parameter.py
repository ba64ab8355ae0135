"""nn.Module.__setattr__ only accepts a Parameter (or None) under a registered parameter's name."""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)",
    "source": "https://github.com/danieltan07/learning-to-reweight-examples/issues/21",
    "kind": "setattr-type-error",
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


def meta_step(meta):
    m = net()
    gs = torch.autograd.grad(loss(m(X)), list(m.parameters()), create_graph=True)
    m[0].weight = m[0].weight - meta["lr"] * gs[0]  # GUILTY
    return loss(m(X))


def meta_step_fixed(meta):
    m = net()
    gs = torch.autograd.grad(loss(m(X)), list(m.parameters()), create_graph=True)
    return loss(functional_call(m, {"0.weight": m[0].weight - meta["lr"] * gs[0]}, (X,)))
