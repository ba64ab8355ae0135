"""Too large a step over too many inner steps multiplies curvature factors larger than one: the loss and the
meta-gradient overflow.
"""

import torch

META = {
    "title": "MAML Gradient clipping: NaN loss in the adaptation phase when the learning rate is too high",
    "source": "https://github.com/learnables/learn2learn/pull/244",
    "kind": "nan",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def meta_params():
    return {"lr": torch.tensor(25.0, dtype=D, requires_grad=True)}


def weights():
    return torch.tensor([[0.3], [-0.2]], dtype=D, requires_grad=True)


def loss(w):
    return ((X @ w - Y) ** 2).mean()


def unroll(meta, scale):
    w = weights()
    for _ in range(80):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w = w - scale * meta["lr"] * g  # GUILTY
    return loss(w)


def meta_step(meta):
    return unroll(meta, 1.0)


def meta_step_fixed(meta):
    return unroll(meta, 0.002)
