"""Inner optimisers that a meta-gradient can run through: pure functions, nothing is written in place.

A rule is two functions behind one signature; what it remembers is passed in and out, never kept:

    state = rule.start(weights)                                          a tuple of {name: tensor}
    directions, state = rule.direction(step, gradients, state, weights)  {name: tensor}, and the new state

    rule.linear                                  True where both are linear in gradients, state and weights together

and one update is `weights[name] - rates[name] * directions[name]`. `step` counts from 0. The numbers are those of
torch.optim with the same arguments. Its own classes write in place: with `differentiable=True` most of them raise, or
turn the meta-gradient into nan, from two inner steps on (notebook 09 has the table). The rules work on plain numbers,
{name: float}, as well.

>>> from metalib.optimisers import OPTIMISERS
>>> OPTIMISERS["momentum"]
SGD(momentum=0.9, nesterov=False, weight_decay=0.0)
"""

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import torch
from torch import Tensor

from metalib.problems import Weights

State = tuple[Weights, ...]


def _zeros(weights: Weights) -> Weights:
    return {name: torch.zeros_like(w) if isinstance(w, Tensor) else 0.0 for name, w in weights.items()}


def _decayed(gradients: Weights, weights: Weights, decay: float) -> Weights:
    """The gradient of the loss plus ½ · decay · |weights|²."""
    return {name: g + decay * weights[name] for name, g in gradients.items()} if decay else gradients


def _not_negative(rule, *names: str) -> None:
    for name in names:
        value = getattr(rule, name)
        if not isinstance(value, Real) or not 0 <= value < math.inf:  # nan fails both comparisons
            raise ValueError(f"{type(rule).__name__}: {name} is {value!r}: give a finite number, 0 or more")


@dataclass(frozen=True)
class SGD:
    """Gradient descent, with momentum as torch.optim.SGD has it: m ← momentum · m + g, the direction is m.

    With `nesterov` the direction is g + momentum · m. Source: Sutskever et al., On the importance of initialization
    and momentum in deep learning, ICML 2013, in torch's notation. The defaults remember nothing: the direction is g.

    >>> from metalib.optimisers import SGD
    >>> rule, weights, gradients = SGD(momentum=0.9), {"w": 1.0}, {"w": 2.0}
    >>> first, memory = rule.direction(0, gradients, rule.start(weights), weights)
    >>> second, memory = rule.direction(1, gradients, memory, weights)
    >>> first, second
    ({'w': 2.0}, {'w': 3.8})
    """

    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    linear: ClassVar[bool] = True

    def __post_init__(self):
        _not_negative(self, "momentum", "weight_decay")
        if self.nesterov and not self.momentum:
            raise ValueError("SGD: nesterov looks ahead along the momentum, which is 0: give a momentum such as 0.9")

    def start(self, weights: Weights) -> State:
        return (_zeros(weights),) if self.momentum else ()

    def direction(self, step: int, gradients: Weights, state: State, weights: Weights) -> tuple[Weights, State]:
        gradients = _decayed(gradients, weights, self.weight_decay)
        if not self.momentum:
            return gradients, state
        momenta = {name: self.momentum * m + gradients[name] for name, m in state[0].items()}
        if not self.nesterov:
            return momenta, (momenta,)
        return {name: gradients[name] + self.momentum * m for name, m in momenta.items()}, (momenta,)


@dataclass(frozen=True)
class Adam:
    """Adam: running means of g and g², both corrected for their start at 0; the direction is m̂ / (√v̂ + eps).

    Source: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, algorithm 1. `weight_decay` is added
    to the gradient, as in torch.optim.Adam; `decoupled` adds it to the direction instead, as in torch.optim.AdamW.

    >>> from metalib.optimisers import Adam
    >>> rule, weights = Adam(), {"w": 1.0}
    >>> direction, memory = rule.direction(0, {"w": -0.02}, rule.start(weights), weights)
    >>> round(direction["w"], 3)
    -1.0
    """

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False
    linear: ClassVar[bool] = False

    def __post_init__(self):
        _not_negative(self, "eps", "weight_decay")
        pair = isinstance(self.betas, tuple | list) and len(self.betas) == 2
        if not pair or not all(isinstance(beta, Real) and 0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"Adam: betas are {self.betas!r}: give two numbers from 0 to below 1")

    def start(self, weights: Weights) -> State:
        return _zeros(weights), _zeros(weights)

    def direction(self, step: int, gradients: Weights, state: State, weights: Weights) -> tuple[Weights, State]:
        first, second = self.betas
        gradients = _decayed(gradients, weights, 0.0 if self.decoupled else self.weight_decay)
        means = {name: first * m + (1 - first) * gradients[name] for name, m in state[0].items()}
        squares = {name: second * v + (1 - second) * gradients[name] * gradients[name] for name, v in state[1].items()}
        unbias, unbias_squares = 1 - first ** (step + 1), 1 - second ** (step + 1)
        directions = {
            name: (m / unbias) / (_root(squares[name] / unbias_squares) + self.eps) for name, m in means.items()
        }
        return _decayed(directions, weights, self.weight_decay if self.decoupled else 0.0), (means, squares)


def _root(squares: Tensor) -> Tensor:
    """√squares with the derivative 0 at 0, where the root's own is infinite and turns the meta-gradient into nan.

    A unit that is off for the whole batch has gradients of exactly 0. There m̂ is 0 as well, so the quotient's
    derivative for the gradient is that of m̂ / eps, whatever is put for the root's.
    """
    if not isinstance(squares, Tensor):
        return math.sqrt(squares)
    seen = squares > 0
    return torch.where(seen, torch.where(seen, squares, 1.0).sqrt(), 0.0)


@dataclass(frozen=True)
class Clipped:
    """The rule on gradients that are scaled down, all by one factor, to a global norm of at most `norm`.

    The factor, min(1, norm / (|g| + 1e-6)) as in torch.nn.utils.clip_grad_norm_, is differentiated like all else;
    torch's own function multiplies in place by a factor that it computes without a graph.

    >>> import torch
    >>> from metalib.optimisers import Clipped
    >>> direction, memory = Clipped(1.0).direction(0, {"w": torch.tensor([3.0, 4.0])}, (), {})
    >>> direction
    {'w': tensor([0.6000, 0.8000])}
    """

    norm: float
    rule: SGD | Adam = field(default_factory=SGD)
    linear: ClassVar[bool] = False

    def __post_init__(self):
        _not_negative(self, "norm")
        check_rule(self.rule)

    def start(self, weights: Weights) -> State:
        return self.rule.start(weights)

    def direction(self, step: int, gradients: Weights, state: State, weights: Weights) -> tuple[Weights, State]:
        length = _root(sum((g**2).sum() for g in gradients.values()))
        factor = (self.norm / (length + 1e-6)).clamp(max=1.0)
        return self.rule.direction(step, {name: factor * g for name, g in gradients.items()}, state, weights)


def check_rule(rule) -> None:
    """ValueError for anything but a rule."""
    if isinstance(rule, type) or not all(hasattr(rule, part) for part in ("start", "direction", "linear")):
        known = ", ".join(map(repr, OPTIMISERS))
        raise ValueError(
            f"optimiser is {rule!r}: give a rule such as SGD(momentum=0.9), Adam() or OPTIMISERS[…] ({known})"
        )


OPTIMISERS = {
    "sgd": SGD(),
    "momentum": SGD(momentum=0.9),
    "nesterov": SGD(momentum=0.9, nesterov=True),
    "weight decay": SGD(weight_decay=0.01),
    "adam": Adam(),
    "adamw": Adam(weight_decay=0.01, decoupled=True),
    "clipped": Clipped(0.1),
}
