"""copy_ into a registered buffer does record a graph, but it is still an in-place write: the saved old weight is gone
by the second step.
"""

import torch
from torch import nn

META = {
    "title": "README: keep weights in buffers to update in place while retaining grad_fn",
    "source": "https://github.com/chenwydj/learning-to-learn-by-gradient-descent-by-gradient-descent",
    "kind": "buffer-copy_",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w1", torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D, requires_grad=True).clone())
        self.register_buffer("w2", torch.tensor([[0.5], [-0.3]], dtype=D, requires_grad=True).clone())

    def loss(self):
        return ((torch.tanh(X @ self.w1) @ self.w2 - Y) ** 2).mean()


def unroll(meta, inplace):
    m = Net()
    for _ in range(2):
        g1, g2 = torch.autograd.grad(m.loss(), (m.w1, m.w2), create_graph=True)
        if inplace:
            m.w1.copy_(m.w1 - meta["lr"] * g1)  # GUILTY
            m.w2.copy_(m.w2 - meta["lr"] * g2)
        else:
            m.w1, m.w2 = m.w1 - meta["lr"] * g1, m.w2 - meta["lr"] * g2
    return m.loss()


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
