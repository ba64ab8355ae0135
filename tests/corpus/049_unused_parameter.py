"""A parameter takes no part in the forward (pooler, unused head); autograd.grad refuses, and with allow_unused=True
returns None.
"""

import torch

META = {
    "title": "Error from maml, gradients var not found -- why?",
    "source": "https://github.com/learnables/learn2learn/issues/314",
    "kind": "unused-parameter",
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
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


def unroll(meta, careful):
    ws = weights() + [torch.ones(2, dtype=D, requires_grad=True)]
    gs = torch.autograd.grad(loss(ws), ws, create_graph=True, allow_unused=careful)  # GUILTY
    return loss([w if g is None else w - meta["lr"] * g for w, g in zip(ws, gs)])


def meta_step(meta):
    return unroll(meta, False)


def meta_step_fixed(meta):
    return unroll(meta, True)
