"""Inside a vmapped task function a state tensor made by torch.zeros is shared by all tasks; adding a per-task gradient
to it in place cannot work.
"""

import torch
from torch.func import grad, vmap

META = {
    "title": "vmap: inplace arithmetic(self, *extra_args) is not possible",
    "source": "https://github.com/pytorch/pytorch/issues/103329",
    "kind": "inplace-under-vmap",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def task(x, y, inplace):
    w = torch.tensor([[0.3], [-0.2]], dtype=D)
    buf = torch.zeros(2, 1, dtype=D)
    for _ in range(2):
        g = grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        if inplace:
            buf += g  # GUILTY
        else:
            buf = buf + g
        w = w - 0.1 * buf
    return ((x @ w - y) ** 2).mean()


def go(inplace):
    return {"losses": vmap(lambda x, y: task(x, y, inplace))(torch.stack([X, X]), torch.stack([Y, 2 * Y])).tolist()}


def run():
    return go(True)


def run_fixed():
    return go(False)
