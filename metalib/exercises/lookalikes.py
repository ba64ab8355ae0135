"""What a loop is tried on, and the common wrong loops as loops that run.

An answer whose outer loss and gradient are those of a lookalike has its fault, and gets its sentence.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Loss = Callable[[Tensor], Tensor]
Descend = Callable[[Tensor, Tensor, int, Loss], Tensor]


class Model(NamedTuple):
    """A model with all its weights in one float64 tensor, and its losses on two sets of points."""

    name: str
    start: Tensor
    inner: Loss
    outer: Loss


def models() -> list[Model]:
    """One weight that fits y = 2x, and a 3-4-1 network with tanh units that fits a sum of sines."""
    generator = torch.Generator().manual_seed(0)
    x, held_x = torch.randn(2, 20, 3, dtype=torch.float64, generator=generator)
    weights = 0.5 * torch.randn(16, dtype=torch.float64, generator=generator)

    def line(x):
        return lambda w: ((w * x[:, 0] - 2 * x[:, 0]) ** 2).mean()

    def network(x):
        y = x.sin().sum(dim=1)
        return lambda w: ((torch.tanh(x @ w[:12].view(3, 4)) @ w[12:] - y) ** 2).mean()

    one = torch.tensor(1.0, dtype=torch.float64)
    return [Model("one weight", one, line(x), line(held_x)), Model("network", weights, network(x), network(held_x))]


def descend(w: Tensor, rate: Tensor, K: int, loss: Loss, create_graph: bool = True) -> Tensor:
    """The inner loop as it should be: K steps of gradient descent."""
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
        w = w - rate * grad
    return w


def _cut(w, rate, K, loss):
    return descend(w, rate.detach(), K, loss)


def _first_order(w, rate, K, loss):
    return descend(w, rate, K, loss, create_graph=False)


def _last_step(w, rate, K, loss):
    w = descend(w, rate.detach(), K - 1, loss).detach().requires_grad_()
    return descend(w, rate, 1, loss)


def _weights_cut(w, rate, K, loss):
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w = w.detach() - rate * grad
    return w


def _stale(w, rate, K, loss):
    (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
    return w - K * rate * grad


LOOKALIKES: dict[str, Descend] = {
    "cut": _cut,
    "first order": _first_order,
    "last step": _last_step,
    "weights cut": _weights_cut,
    "still": lambda w, rate, K, loss: w + 0 * rate,
    "uphill": lambda w, rate, K, loss: descend(w, -rate, K, loss),
    "too few": lambda w, rate, K, loss: descend(w, rate, K - 1, loss) + 0 * rate,
    "too many": lambda w, rate, K, loss: descend(w, rate, K + 1, loss),
    "one step": lambda w, rate, K, loss: descend(w, rate, 1, loss),
    "stale": _stale,
}
