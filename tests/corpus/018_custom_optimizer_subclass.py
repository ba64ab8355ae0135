"""A subclass of torch.optim.Optimizer with create_graph=True in step() still writes leaf params under no_grad."""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "ENH: custom optimizer template (commit)",
    "source": "https://github.com/NeuralDynamicsAndComputing/MetaLearning-Plasticity/commit/10a089f",
    "kind": "optimizer-step-in-inner-loop",
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


class MyOptimizer(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    def step(self, value):
        for group in self.param_groups:
            gs = torch.autograd.grad(value, group["params"], create_graph=True)
            for p, g in zip(group["params"], gs):
                with torch.no_grad():
                    p.add_(-group["lr"] * g)  # GUILTY


def meta_step(meta):
    m = net()
    MyOptimizer(m.parameters(), meta["lr"]).step(loss(m(X)))
    return loss(m(X))


def meta_step_fixed(meta):
    m = net()
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    for _ in range(1):
        gs = torch.autograd.grad(loss(functional_call(m, p, (X,))), list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * g for (k, v), g in zip(p.items(), gs)}
    return loss(functional_call(m, p, (X,)))
