import torch
from torch import nn
from torch.func import functional_call

META = {"id": "r10", "kind": "batch norm with cloned buffers", "verdict": "right"}


def make():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.SiLU(), nn.Linear(4, 2)).double()


NET = make()


def forward(params, buffers, x):
    buffers = {k: b.clone() for k, b in buffers.items()}
    return functional_call(NET, {**params, **buffers}, (x,))


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    g = torch.Generator().manual_seed(9)
    x, y = torch.randn(10, 3, generator=g, dtype=torch.float64), torch.randint(0, 2, (10,), generator=g)
    params = dict(NET.named_parameters())
    buffers = dict(NET.named_buffers())
    for _ in range(2):
        l = nn.functional.cross_entropy(forward(params, buffers, x[:5]), y[:5])
        gs = torch.autograd.grad(l, list(params.values()), create_graph=True)
        params = {k: p - meta["lr"] * gi for (k, p), gi in zip(params.items(), gs)}
    return nn.functional.cross_entropy(forward(params, buffers, x[5:]), y[5:])
