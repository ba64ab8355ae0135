"""Assigning to .data stores only numbers; the grad_fn of the right-hand side is dropped."""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "Set torch.nn.Parameters data including the gradient",
    "source": "https://prodissertation.co.uk/post/set-torch-nn-parameters-data-including-the-gradient",
    "kind": "data-write",
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
    for p, g in zip(m.parameters(), gs):
        p.data = p - meta["lr"] * g  # GUILTY
    return loss(m(X))


def meta_step_fixed(meta):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(1):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))
