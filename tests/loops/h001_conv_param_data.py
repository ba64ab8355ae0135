"""Few-shot image classifier: learn the step size used to adapt a tiny conv net."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

META = {
    "id": "h001",
    "kind": "data-write",
    "verdict": "cut",
    "cause": "The adapted conv weights are stored with p.data = ..., which drops their dependence on the rate.",
}

gen = torch.Generator().manual_seed(11)
xs = torch.randn(6, 1, 6, 6, generator=gen, dtype=torch.float64)
ys = torch.tensor([0, 1, 2, 0, 1, 2])
xq = torch.randn(4, 1, 6, 6, generator=gen, dtype=torch.float64)
yq = torch.tensor([2, 1, 0, 1])


class TinyConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.fc = nn.Linear(2 * 16, 3)

    def forward(self, x):
        h = torch.tanh(self.conv(x))
        return self.fc(h.flatten(1))


def build():
    torch.manual_seed(3)
    return TinyConv().double()


def meta_params():
    return {"inner_lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    net = build()
    for _ in range(2):
        loss = F.cross_entropy(net(xs), ys)
        grads = torch.autograd.grad(loss, net.parameters(), create_graph=True)
        for param, grad in zip(net.parameters(), grads):
            param.data = param.data - meta["inner_lr"] * grad  # GUILTY
    return F.cross_entropy(net(xq), yq)


def meta_step_fixed(meta):
    net = build()
    fast = dict(net.named_parameters())
    for _ in range(2):
        loss = F.cross_entropy(functional_call(net, fast, (xs,)), ys)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {n: p - meta["inner_lr"] * g for (n, p), g in zip(fast.items(), grads)}
    return F.cross_entropy(functional_call(net, fast, (xq,)), yq)
