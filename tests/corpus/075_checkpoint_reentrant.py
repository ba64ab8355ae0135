"""Reentrant checkpointing reruns backward inside backward and cannot serve autograd.grad; with
.backward(create_graph=True) a learned lr trips the version counter.
"""

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

META = {
    "title": "Double backward with checkpointed model and learnable inner loop learning rates",
    "source": "https://discuss.pytorch.org/t/double-backward-with-checkpointed-model-and-learnable-inner-loop-learning-rates/108137",
    "kind": "checkpointing",
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


def unroll(meta, reentrant):
    m = net()
    x = X.clone().requires_grad_()
    loss(checkpoint(m, x, use_reentrant=reentrant)).backward(create_graph=True)  # GUILTY
    return loss(functional_call(m, {k: v - meta["lr"] * v.grad for k, v in m.named_parameters()}, (X,)))


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
