"""w.data on the right-hand side keeps the lr * g term but cuts the identity path w_k -> w_k+1, so earlier steps are
partly lost.
"""

import torch

META = {
    "title": "Why redefining the default pytorch nn.Modules?",
    "source": "https://github.com/danieltan07/learning-to-reweight-examples/issues/2",
    "kind": "data-read",
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


def meta_step(meta):
    ws = weights()
    for _ in range(3):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w.data - meta["lr"] * g for w, g in zip(ws, gs)]  # GUILTY
    return loss(ws)


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(3):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
