"""Notebook 01: the meta-gradient of one step, its closed form for more, and slopes without autograd."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.describe import best_rate
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import Loss, descend, models
from metalib.exercises.values import examine_formula
from metalib.settings import Settings
from metalib.train import Run

DOUBLE = torch.float64


class Step(NamedTuple):
    """One inner step: the gradients of the inner loss where it starts and of the outer loss where it ends."""

    where: str
    inner: Tensor
    outer: Tensor
    slope: Tensor  # what autograd says of the rate


@exercise("1.1", "Two gradients, one number", minutes=4)
def two_gradients(answer: Callable[[Tensor, Tensor], Tensor]) -> Finding:
    steps, apart = _steps(), []
    step_of = {id(step.inner): step for step in steps}

    def watched(inner, outer):
        value, step = answer(inner.clone(), outer.clone()), step_of[id(inner)]
        if isinstance(value, Tensor) and value.shape == inner.shape != () and _close(value.sum(), step.slope):
            apart.append(step.where)
        return value

    given = [(step.inner, step.outer) for step in steps]
    finding = examine_formula(watched, lambda inner, outer: step_of[id(inner)].slope, given, TWO_GRADIENTS)
    if apart:
        finding = replace(finding, why=f"Right on one weight, not on the {apart[0]}: {NOT_ADDED}")
    return _named(finding, [step.where for step in steps])


NOT_ADDED = (
    "your function returns a product for each weight, but the outer loss changes by all of them together: add them up."
)


TWO_GRADIENTS = {
    "The number is right but for its sign: the step goes against the inner gradient.": lambda a, b: (a * b).sum(),
    "This is minus the inner gradient times itself: the outer gradient at the end of the step is not in it.": (
        lambda a, b: -(a * a).sum()
    ),
    "This is minus the outer gradient times itself: the inner gradient, along which the step went, is not in it.": (
        lambda a, b: -(b * b).sum()
    ),
    "Right on one weight, not on more: a mean of the products divides the sum by the number of weights.": (
        lambda a, b: -(a * b).mean()
    ),
    "The product of the two lengths forgets the angle between the gradients, and with it the sign.": (
        lambda a, b: -a.norm() * b.norm()
    ),
    "Right on one weight, not on more: the product of two sums multiplies entries of different weights.": (
        lambda a, b: -a.sum() * b.sum()
    ),
    "This is the cosine of the angle: it forgets how long the two gradients are.": (
        lambda a, b: -(a * b).sum() / (a.norm() * b.norm())
    ),
}


def _steps() -> list[Step]:
    """One step on quadratics with one weight, or more, in tensors of several shapes; and one on the network."""
    generator, network, steps = torch.Generator().manual_seed(1), models()[1], []
    for shape in ((), (), (3,), (2, 3), (4, 1), (2, 2, 2), (5,)):
        where = f"tensor of shape {shape}" if shape else "one weight"
        start = torch.randn(shape, dtype=DOUBLE, generator=generator)
        steps.append(_step(where, start, _quadratic(shape, generator), _quadratic(shape, generator), 0.2))
    return [*steps, _step("network", network.start, network.inner, network.outer, 0.1)]


def _quadratic(shape: tuple, generator: torch.Generator) -> Loss:
    """½ (w - c)ᵀ RᵀR (w - c) with a random R and c."""
    size = math.prod(shape)
    root = torch.randn(size, size, dtype=DOUBLE, generator=generator)
    c = torch.randn(shape, dtype=DOUBLE, generator=generator)
    return lambda w: ((root @ (w - c).reshape(-1)) ** 2).sum() / 2


def _step(where: str, start: Tensor, inner: Loss, outer: Loss, rate: float) -> Step:
    w, eta = start.clone().requires_grad_(), torch.tensor(rate, dtype=DOUBLE, requires_grad=True)
    (first,) = torch.autograd.grad(inner(w), w)
    end = w - eta * first
    slope, last = torch.autograd.grad(outer(end), [eta, end])
    return Step(where, first, last, slope)


@exercise("1.2", "The formula for held-out points", minutes=8)
def held_out(answer: Callable) -> Finding:
    places = {}
    for kind, g, d in (("the same loss", 1.5, 2.0), ("another curvature", 0.8, 2.0), ("another best weight", 0.8, 1.7)):
        for K in (1, 2, 5, 20):
            for rate in (0.2, 1.6):
                places[f"K = {K}, rate times h = {1.5 * rate:.1f}, {kind}"] = (K, rate, 1.5, 2.0, g, d, 0.5)
    finding = examine_formula(answer, _by_autograd, places.values(), CLOSED_FORMS, rtol=1e-8)
    return _named(finding, list(places))


def _by_autograd(K, rate, h, c, g, d, w0) -> Tensor:
    w, eta = torch.tensor([w0, rate], dtype=DOUBLE).unbind()
    w, eta = w.requires_grad_(), eta.requires_grad_()
    end = descend(w, eta, K, lambda w: h * (w - c) ** 2 / 2)
    return torch.autograd.grad(g * (end - d) ** 2 / 2, eta)[0]


def _weight(K, rate, h, c, w0) -> float:
    return c + (1 - rate * h) ** K * (w0 - c)


def _times(factor: Callable) -> Callable:
    """The right formula times a wrong factor, a function of K, rate, h and g."""

    def formula(K, rate, h, c, g, d, w0):
        exact = -K * g * h * (1 - rate * h) ** (K - 1) * (_weight(K, rate, h, c, w0) - d) * (w0 - c)
        return factor(K, rate, h, g) * exact

    return formula


def _first_order(K, rate, h, c, g, d, w0):
    steps = sum(h * (_weight(k, rate, h, c, w0) - c) for k in range(K))
    return -g * (_weight(K, rate, h, c, w0) - d) * steps


def _same_loss(K, rate, h, c, g, d, w0):
    return -K * h**2 * (1 - rate * h) ** (2 * K - 1) * (w0 - c) ** 2


def _same_best(K, rate, h, c, g, d, w0):
    return _same_loss(K, rate, h, c, g, d, w0) * g / h


RIGHT = _times(lambda K, rate, h, g: 1)
CLOSED_FORMS = {
    "Right where both losses are the same, wrong where the outer one has another curvature: it is the outer gradient "
    "that has the factor g.": _same_loss,
    "Right while both losses have the same best weight, wrong where these differ: the outer gradient measures the "
    "distance to d, not to c.": _same_best,
    "Inner and outer loss are exchanged: the steps are taken on the inner one, with h and c.": (
        lambda K, rate, h, c, g, d, w0: RIGHT(K, rate, g, d, h, c, w0)
    ),
    "Right at one step, wrong at two: this is the share of the last step alone, each of the K adds as much.": (
        _times(lambda K, rate, h, g: 1 / K)
    ),
    "One power of 1 - rate·h too many: a derivative takes one away.": _times(lambda K, rate, h, g: 1 - rate * h),
    "One power of 1 - rate·h too few.": _times(lambda K, rate, h, g: 1 / (1 - rate * h)),
    "One curvature is missing: the inner gradient has one as a factor, and so has the outer gradient.": _times(
        lambda K, rate, h, g: 1 / h
    ),
    "Twice the right number: the ½ of the loss cancels the 2 of its square.": _times(lambda K, rate, h, g: 2),
    "Right at one step, wrong at two: this is the first-order gradient, in which a later inner gradient does not know "
    "that a different rate would have moved the weight.": _first_order,
    "This is a formula for one step, whatever K is.": lambda K, *rest: RIGHT(1, *rest),
}


@goal("01", "one step: two runs that end at the best rate, one whose first meta-gradient is negative, one positive")
def from_both_sides(runs: list[Run]) -> str:
    """Only start rate, meta-rate, seed and the number of outer steps may differ from the lab's own settings."""
    free = {name: getattr(Settings(), name) for name in ("start_rate", "meta_rate", "seed", "outer_steps")}
    tried = [run for run in runs if run.records and not run.error and replace(run.settings, **free) == Settings()]
    sides = {run.records[0].meta_gradient["log_rate"] > 0: run for run in tried if _arrived(run)}
    if len(sides) < 2:
        return ""
    texts = (
        f"from {run.settings.start_rate:g} it is {run.records[0].meta_gradient['log_rate']:+.2g}, and the rate "
        f"{'falls' if above else 'climbs'} to {run.records[-1].rates['rate']:.2g}"
        for above, run in sorted(sides.items())
    )
    return "; ".join(texts) + "."


def _arrived(run: Run) -> bool:
    """On average over the last fifty outer steps, within a part in twenty of the best rate."""
    last = [record.rates["rate"] for record in run.records[-50:]]
    return abs(sum(last) / len(last) / best_rate(run.settings) - 1) < 0.05


def _named(finding: Finding, names: list[str]) -> Finding:
    seen = [f"{name}: {line}" for name, line in zip(names, finding.seen, strict=False)]
    return Finding(finding.solved, finding.why, seen)


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.to(DOUBLE), b, rtol=1e-9, atol=0)
