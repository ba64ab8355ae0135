"""The query loss before the last step is computed under no_grad for logging; with one inner step it is also the one
that is differentiated.
"""

import torch

META = {
    "title": "questions with respect to the no_grad()",
    "source": "https://github.com/dragen1860/MAML-Pytorch/issues/40",
    "kind": "no-grad-meta-loss",
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


def meta_step(meta, steps=1):
    ws, losses = weights(), []
    for k in range(steps):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
        with torch.no_grad():
            losses.append(loss(ws))  # GUILTY
    return losses[-1]


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(1):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
