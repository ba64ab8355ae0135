"""The forward uses the params dict (functional_call), but the update rule reads a weight from the module object: the
initial one, at every step.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "FIX: bug in computational graph (commit)",
    "source": "https://github.com/NeuralDynamicsAndComputing/MetaLearning-Plasticity/commit/4f2a80b",
    "kind": "stale-module-weights",
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


def unroll(meta, broken):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(2):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        decay = {k: v for k, v in m.named_parameters()} if broken else p  # GUILTY
        p = {k: v - meta["lr"] * (g + decay[k]) for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
