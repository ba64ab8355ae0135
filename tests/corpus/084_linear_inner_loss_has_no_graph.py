"""If the inner loss is linear in the weights its gradient is a constant: create_graph=True yields a tensor with
requires_grad=False, legitimately.
"""

import torch

META = {
    "title": "Second derivative fails if first derivative happens to be constant",
    "source": "https://github.com/pytorch/pytorch/issues/32304",
    "kind": "legitimate-zero",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


def meta_step(meta):
    w = torch.tensor([[0.3], [-0.2]], dtype=D, requires_grad=True)
    (g,) = torch.autograd.grad((X @ w).mean(), w, create_graph=True)  # FINE
    assert not g.requires_grad
    return ((X @ (w - meta["lr"] * g) - Y) ** 2).mean()


meta_step_fixed = meta_step
