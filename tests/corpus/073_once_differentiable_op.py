"""A custom autograd.Function whose backward is marked once_differentiable (deformable conv, RoIAlign, focal loss, hash
grids ...).
"""

import torch
from torch.autograd.function import once_differentiable

META = {
    "title": "once_differentiable",
    "source": "https://github.com/facebookresearch/higher/issues/137",
    "kind": "no-double-backward",
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


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):  # GUILTY
        return 2 * ctx.saved_tensors[0] * g


def unroll(meta, sq):
    f = lambda ws: ((sq(X @ ws[0]) @ ws[1] - Y) ** 2).mean()
    ws = weights()
    for _ in range(2):
        gs = torch.autograd.grad(f(ws), ws, create_graph=True)
        ws = [w - 0.2 * meta["lr"] * g for w, g in zip(ws, gs)]
    return f(ws)


def meta_step(meta):
    return unroll(meta, Square.apply)


def meta_step_fixed(meta):
    return unroll(meta, lambda x: x * x)
