"""Even with cloned params the step is an in-place write; from the second inner step on, a hidden layer's saved weight
has moved.
"""

import torch

META = {
    "title": "Add initial support for differentiable optimizers (manual cloning left to the user)",
    "source": "https://github.com/pytorch/pytorch/pull/80938",
    "kind": "inplace-on-saved-tensor",
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
    ws = [w.clone() for w in weights()]
    opt = torch.optim.SGD(ws, lr=meta["lr"], differentiable=True)
    for _ in range(2):
        for w, g in zip(ws, torch.autograd.grad(loss(ws), ws, create_graph=True)):
            w.grad = g
        opt.step()  # GUILTY
    return loss(ws)


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(2):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
