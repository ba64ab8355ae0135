"""vmap refuses random ops until told whether tasks share the mask."""

import torch
from torch import nn
from torch.func import functional_call, vmap

META = {
    "title": "[BUG] SACLoss module does not allow stochastic modules (Dropout) due to vmap",
    "source": "https://github.com/pytorch/rl/issues/2313",
    "kind": "randomness",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def go(**kw):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1)).double()
    p = dict(m.named_parameters())
    return {"shape": tuple(vmap(lambda x: functional_call(m, p, (x,)), **kw)(torch.stack([X, X])).shape)}  # GUILTY


def run():
    return go()


def run_fixed():
    return go(randomness="different")
