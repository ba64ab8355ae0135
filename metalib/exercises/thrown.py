"""Notebook 08's outer loop that is thrown out by one huge meta-gradient: what its repairs are judged by.

The check runs the reader's whole outer loop from a rate beyond the edge, on two curvatures and on a network, at one,
two and five inner steps, and compares where the rate ends with the best constant one.
"""

import statistics
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from metalib.exercises.checking import Finding, exercise
from metalib.exercises.lookalikes import LOOKALIKES, Descend, Model, descend, models
from metalib.exercises.loops import REASONS, STEPS, WORDS, raised
from metalib.report import Undecided

NEAR = 0.08  # of the best rate
LOOKS = ("first order", "last step", "weights cut", "stale")
STILL = "no inner step is made, the outer loss is taken at the start"


@lru_cache
def problems() -> list[tuple[Model, float]]:
    """A bowl with two curvatures, and a tanh network; each with a rate that is beyond its edge."""
    h, network = torch.tensor([3.0, 0.3], dtype=torch.float64), models()[1]

    def bowl(w):
        return (h * w**2).sum() / 2

    return [(Model("two curvatures", torch.ones(2, dtype=torch.float64), bowl, bowl), 0.8), (network, 1.0)]


def slope(model: Model, loop: Descend, rate: float, K: int) -> float:
    """The derivative of the outer loss for the rate, as this inner loop claims it."""
    leaf = torch.tensor(rate, dtype=torch.float64, requires_grad=True)
    loss = model.outer(loop(model.start.clone().requires_grad_(), leaf, K, model.inner))
    return torch.autograd.grad(loss, leaf)[0].item()


@lru_cache
def best_rate(place: int, K: int) -> float:
    """Where the exact slope changes its sign, below the start."""
    (model, high), low = problems()[place], 0.01
    for _ in range(16):
        rate = (low + high) / 2
        low, high = (low, rate) if slope(model, descend, rate, K) > 0 else (rate, high)
    return (low + high) / 2


@lru_cache
def learned_by(kind: str, place: int, K: int) -> float:
    """Where an outer loop that is not thrown ends with this wrong inner loop; it may rest where the slope is tiny."""
    model, rate = problems()[place]
    for _ in range(100):
        rate -= 0.05 * max(-1.0, min(1.0, slope(model, LOOKALIKES[kind], rate, K)))
    return rate


@exercise("8.2", "Thrown out by one gradient", minutes=8)
def thrown_out(answer: Callable) -> Finding:
    seen: list[str] = []
    for K in STEPS:
        for place, (model, start) in enumerate(problems()):
            rates, reached = run(answer, model, start, K)
            best, end = best_rate(place, K), statistics.median(rates[-9:])
            seen.append(f"K = {K}, {model.name}: from {start} to {end:.3g}, the best rate is {best:.3g}")
            if not abs(end / best - 1) < NEAR:
                why = f"{_before(place, K)}{reason(place, K, rates, reached)}."
                return Finding(False, why[0].upper() + why[1:], seen)
    return Finding(True, "The rate stays finite and ends at the best one, at one, two and five steps.", seen)


def _before(place: int, K: int) -> str:
    if place:
        return f"right on {problems()[0][0].name}, not on the {problems()[place][0].name}: "
    return f"right at {WORDS[max(k for k in STEPS if k < K)]}, wrong at {WORDS[K]}: " if K > 1 else ""


def run(answer: Callable, model: Model, start: float, K: int) -> tuple[list[float], Tensor]:
    """The rates that the answer's loop goes through, and the first weights that it gives to the outer loss."""
    inner, outer = [], []

    def noted(loss, first):
        return lambda w: (first or first.append(w), loss(w))[1]

    try:
        rates = answer(start, K, model.start.clone(), noted(model.inner, inner), noted(model.outer, outer))
    except RuntimeError as error:
        still = outer and torch.equal(outer[0].detach(), model.start)
        why = f"{type(error).__name__}: {STILL}" if still else raised(error)
        raise Undecided(f"K = {K}, {model.name}: it raises {why}") from error
    rates = rates.tolist() if hasattr(rates, "tolist") else rates  # a tensor or an array
    if not isinstance(rates, list | tuple) or len(rates) < 20:
        what = f"{len(rates)} rates" if isinstance(rates, list | tuple) else type(rates).__name__
        raise Undecided(f"Your function returned {what}: return a list, the rate after each of 100 outer steps")
    for name, first, for_what in (("inner", inner, "to descend"), ("outer", outer, "to learn the rate for")):
        if not first:
            raise Undecided(f"The {name} loss, the one {for_what}, is never asked for")
    return [rate.item() if isinstance(rate, Tensor) else float(rate) for rate in rates], outer[0]


def reason(place: int, K: int, rates: list[float], reached: Tensor) -> str:
    """What is wrong with rates that do not end near the best one."""
    (model, start), best, first, last = problems()[place], best_rate(place, K), rates[0], sorted(rates[-9:])
    if all(rate == start for rate in rates):
        return frozen(model, reached)
    if first > start:
        return "the first outer step makes the rate larger, although it is too large already: it climbs the outer loss"
    if not all(abs(rate) < 100 * start for rate in rates):  # true of nan as well
        huge = slope(model, descend, start, K)
        return f"it diverges: the first meta-gradient is {huge:.3g}, and one outer step takes the rate to {first:.3g}"
    if last[0] < 0 < last[-1] or last[-1] - last[0] > 0.2 * best:
        return f"the rate does not settle but jumps between {last[0]:.2g} and {last[-1]:.2g}: its steps are too large"
    if last[4] < 0:
        return "the rate ends below zero: the inner loop walks up the loss"
    if last[4] < 0.01 * best:
        return "one huge step has thrown the rate to nearly zero: a logarithm keeps it positive, but bounds no step"
    if len(set(rates[5:])) == 1:
        return f"the rate jumps to {last[4]:.3g} and stays there: a bound holds it, chosen by hand and not learned"
    if found := resembles(last[4], place, K):
        return found
    if abs(rates[-1] - rates[-10]) < 0.01 * abs(rates[9] - start):
        return f"it settles at {last[4]:.3g}, where the outer loss of {K} step{'s' * (K > 1)} is not the smallest"
    if start - last[4] < 0.5 * (start - best):
        return "the rate hardly moves: a step size that the largest gradient bears is too small for the others"
    if first < best / 2:
        return f"one huge step has thrown the rate from {start} to {first:.3g}, and the way back is slow"
    return f"it stops short, at {last[4]:.3g}: by then its steps are too small to arrive"


def resembles(end: float, place: int, K: int) -> str:
    """The fault of an inner loop with which the rate would end at just this number; "" where none is known."""

    def close(rate):
        return abs(end / rate - 1) < 0.015

    for k in range(1, K):
        if close(best_rate(place, k)):
            return f"it has learned the best rate for K = {k}: a horizon that stays short learns another rate"
    if close(best_rate(place, K + 1)):
        return REASONS["too many"]
    return next((REASONS[kind] for kind in LOOKS if K > 1 and close(learned_by(kind, place, K))), "")


def frozen(model: Model, reached: Tensor) -> str:
    """Why a rate does not move at all, as far as the weights show that reach the outer loss."""
    if torch.equal(reached.detach(), model.start):
        return f"the rate does not move: {STILL}"
    if not reached.requires_grad or reached.is_leaf:
        return "the rate does not move: the weights that reach the outer loss have no history, so no gradient arrives"
    return "the rate does not move: its gradient is zero, or no step is made with it"
