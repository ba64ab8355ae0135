"""for mp, p in zip(...): p = mp only rebinds a local name; the module keeps its own parameters."""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "Another way to implement MAML",
    "source": "https://discuss.pytorch.org/t/another-way-to-implement-maml-model-agnostic-meta-learning/164439",
    "kind": "python-rebinding",
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
    fast = [p.detach().clone().requires_grad_() for p in m.parameters()]
    for meta_p, model_p in zip(fast, m.parameters()):
        model_p = meta_p  # GUILTY
    gs = torch.autograd.grad(loss(m(X)), fast, create_graph=True)
    return loss(m(X))


def meta_step_fixed(meta):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(1):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))
