"""A fresh leaf per inner step keeps only the last step's dependence on the learning rate."""

import torch

META = {
    "title": "Why DifferentiableOptimizer detaches parameters when track_higher_grads = False?",
    "source": "https://github.com/facebookresearch/higher/issues/102",
    "kind": "detach-clone",
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
        ws = [w.detach().clone().requires_grad_() for w in ws]  # GUILTY
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(3):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
