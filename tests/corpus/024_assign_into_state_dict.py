"""state_dict() returns a fresh dict of detached tensors; putting a new tensor into that dict changes nothing in the
module.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "meta-learning support (state_dict()['params'] = ... seems not to work)",
    "source": "https://github.com/NVlabs/tiny-cuda-nn/issues/162",
    "kind": "state-dict-copy",
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
    for (k, p), g in zip(m.named_parameters(), gs):
        m.state_dict()[k] = p - meta["lr"] * g  # GUILTY
    return loss(m(X))


def meta_step_fixed(meta):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(1):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))
