"""functional_call with parameters only still updates the module's own running statistics: each task, each inner step
and each evaluation leaves a trace.
"""

import torch
from torch import nn
from torch.func import functional_call

META = {
    "title": "RFC(from users): nn.Module behavior with in-place changes",
    "source": "https://github.com/pytorch/pytorch/issues/86641",
    "kind": "batchnorm-buffers",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def go(clone):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).double()
    p = dict(m.named_parameters())
    for _ in range(3):
        b = {k: v.clone() for k, v in m.named_buffers()} if clone else {}
        functional_call(m, {**p, **b}, (X,))  # GUILTY
    return {"batches_tracked": int(m[1].num_batches_tracked)}


def run():
    return go(False)


def run_fixed():
    return go(True)
