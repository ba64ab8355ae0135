"""torch.func.grad ignores an outer no_grad and returns right gradients, so nothing looks wrong; but the update around
it is not recorded.
"""

import torch
from torch.func import grad

META = {
    "title": "grad doesn't run when under torch.no_grad()",
    "source": "https://github.com/pytorch/functorch/issues/13",
    "kind": "no-grad-update",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def weights():
    return [
        torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D, requires_grad=True),
        torch.tensor([[0.5], [-0.3]], dtype=D, requires_grad=True),
    ]


def loss(ws):
    return ((torch.tanh(X @ ws[0]) @ ws[1] - Y) ** 2).mean()


def meta_params():
    return {
        "lr": torch.tensor(0.1, dtype=D, requires_grad=True),
        "penalty": torch.tensor(0.3, dtype=D, requires_grad=True),
    }


def meta_step(meta):
    ws = [w.detach() for w in weights()]
    with torch.no_grad():
        gs = grad(loss)(ws)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]  # GUILTY
    return loss(ws) + meta["penalty"] ** 2


def meta_step_fixed(meta):
    ws = [w.detach() for w in weights()]
    gs = grad(loss)(ws)
    return loss([w - meta["lr"] * g for w, g in zip(ws, gs)]) + meta["penalty"] ** 2
