"""nn.Parameter(t) always makes a new leaf: it takes t's values and drops t's grad_fn."""

import torch
from torch import nn

META = {
    "title": "gradient w.r.t. original parameters lost because the merged weight was set as a new Parameter",
    "source": "https://github.com/chr5tphr/zennit/pull/185",
    "kind": "parameter-rewrap",
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


def unroll(meta, wrap):
    m = net()
    gs = torch.autograd.grad(loss(m(X)), list(m.parameters()), create_graph=True)
    for layer, gw, gb in ((m[0], *gs[:2]), (m[2], *gs[2:])):
        w, b = layer.weight - meta["lr"] * gw, layer.bias - meta["lr"] * gb
        if wrap:
            layer.weight, layer.bias = nn.Parameter(w), nn.Parameter(b)  # GUILTY
        else:
            del layer.weight, layer.bias
            layer.weight, layer.bias = w, b
    return loss(m(X))


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
