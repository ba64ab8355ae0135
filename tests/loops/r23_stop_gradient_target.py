"""TD-like target from a frozen network that does not depend on the learned quantities."""

import copy
import torch
from torch import nn

META = {"id": "r23", "kind": "legitimate stop-gradient target", "verdict": "right"}


def q_net():
    torch.manual_seed(18)
    return nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def meta_params():
    return {"lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    q = q_net()
    target = copy.deepcopy(q).requires_grad_(False)
    g = torch.Generator().manual_seed(2)
    s, s2 = torch.randn(6, 3, generator=g, dtype=torch.float64), torch.randn(6, 3, generator=g, dtype=torch.float64)
    a, r = torch.randint(0, 2, (6, 1), generator=g), torch.randn(6, 1, generator=g, dtype=torch.float64)
    with torch.no_grad():
        td = r + 0.9 * target(s2).max(1, keepdim=True).values
    fast = dict(q.named_parameters())
    err = lambda f: (torch.func.functional_call(q, f, (s,)).gather(1, a) - td.detach()).pow(2).mean()
    for _ in range(2):
        gs = torch.autograd.grad(err(fast), list(fast.values()), create_graph=True)
        fast = {k: v - meta["lr"] * gi for (k, v), gi in zip(fast.items(), gs)}
    return err(fast)
