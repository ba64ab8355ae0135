"""Learned initialisation held in a module; the fast weights are taken from state_dict()."""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "id": "h008",
    "kind": "state-dict",
    "verdict": "cut",
    "cause": "state_dict() returns detached tensors, so the fast weights do not come from the learned initialisation.",
}

x = torch.tensor([[0.3, -1.2], [0.7, 0.4], [-0.5, 0.9]], dtype=torch.float64)
y = torch.tensor([[0.1], [0.8], [-0.4]], dtype=torch.float64)


def meta_params():
    torch.manual_seed(9)
    return {
        "weight": nn.Parameter(torch.randn(1, 2, dtype=torch.float64)),
        "bias": nn.Parameter(torch.zeros(1, dtype=torch.float64)),
    }


def wrap(meta):
    net = nn.Linear(2, 1).double()
    net.weight, net.bias = meta["weight"], meta["bias"]
    return net


def run(net, fast):
    for v in fast.values():
        if v.is_leaf:
            v.requires_grad_(True)
    for _ in range(2):
        loss = torch.cosh(functional_call(net, fast, (x,)) - y).mean()
        gs = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {k: v - 0.3 * g for (k, v), g in zip(fast.items(), gs)}
    return torch.cosh(functional_call(net, fast, (x + 0.2,)) - y).mean()


def meta_step(meta):
    net = wrap(meta)
    fast = {k: v for k, v in net.state_dict().items()}  # GUILTY
    return run(net, fast)


def meta_step_fixed(meta):
    net = wrap(meta)
    fast = {k: v for k, v in net.named_parameters()}
    return run(net, fast)
