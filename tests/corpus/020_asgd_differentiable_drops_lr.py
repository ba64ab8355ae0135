"""ASGD(differentiable=True) converts lr to a number on the way; Adamax/Adagrad/Adadelta/RMSprop/Rprop raise TypeError
for a tensor lr that requires grad.
"""

import torch

META = {
    "title": "tracker: differentiable learning rates per optimizer",
    "source": "https://github.com/pytorch/pytorch/issues/141832",
    "kind": "optimizer-drops-lr",
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


def one(cls, meta):
    ws = [w.clone() for w in weights()]
    opt = cls(ws, lr=meta["lr"], differentiable=True)
    for w, g in zip(ws, torch.autograd.grad(loss(ws), ws, create_graph=True)):
        w.grad = g
    opt.step()  # GUILTY
    return loss(ws)


def meta_step(meta):
    return one(torch.optim.ASGD, meta)


def meta_step_fixed(meta):
    return one(torch.optim.SGD, meta)
