"""Notebook 06: the nested module, repaired."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.learning import examine_learning
from metalib.referee import referee
from metalib.report import Undecided
from metalib.train import Run

RateOf = Callable[[Tensor], Tensor]
RAWS = [-20.0, -10.0, -4.0, -1.0, -0.1, 0.0, 0.1, 1.0, 4.0, 10.0, 20.0]
SMOOTH = [-19.7, -6.3, -2.1, -0.3, 0.4, 1.7, 5.9, 19.6]  # a rate that is put together from pieces has no kink here
STARTS = [0.001, 0.1, 0.5, 2.0]
STUCK = "the derivative is zero: once the outer loop has come here, nothing moves it away again"


@exercise("6.1", "A rate that stays positive", minutes=6)
def stays_positive(answer: tuple[RateOf, RateOf]) -> Finding:
    if not isinstance(answer, tuple) or len(answer) != 2 or not all(map(callable, answer)):
        return Finding(False, "Give two functions: rate_of and raw_of.")
    rate_of, raw_of = answer
    points = {raw: _point(rate_of, raw) for raw in RAWS}
    seen = [f"raw = {raw:g}: rate {_number(points[raw][0])}, slope {_number(points[raw][1])}" for raw in RAWS[::5]]
    why = _not_positive(points) or _no_slope(rate_of, points) or _turns(points) or _wrong_slope(rate_of)
    for start in STARTS if not why else []:
        why = why or _no_start(rate_of, raw_of, start, points)
        seen += [] if why else [f"it can start at {start:g}"]
    return Finding(not why, why or "Positive everywhere, never stuck, and it starts where you want it to.", seen)


def _point(rate_of: RateOf, number: float) -> tuple[float, float | None]:
    """(rate, its derivative by autograd) at a raw number. Undecided when the rate is not one number in a tensor."""
    raw = torch.tensor(number, dtype=torch.float64, requires_grad=True)
    rate = rate_of(raw)
    if not isinstance(rate, Tensor) or rate.numel() != 1:
        what = f"a tensor of shape {tuple(rate.shape)}" if isinstance(rate, Tensor) else type(rate).__name__
        raise Undecided(f"Your rate_of returned {what}: return a tensor with one number, and with its history")
    slope = torch.autograd.grad(rate, raw, allow_unused=True)[0] if rate.requires_grad else None
    return rate.item(), None if slope is None else slope.item()


def _number(value: float | None) -> str:
    return "None" if value is None else f"{value:.3g}"


def _not_positive(points) -> str:
    bad = next(((raw, rate) for raw, (rate, _) in points.items() if not 0 < rate < math.inf), None)
    return f"At raw = {bad[0]:g} the rate is {bad[1]:g}: it must be above zero, whatever the raw number." if bad else ""


def _judge(rate_of: RateOf, raw: float):
    return referee(lambda meta: rate_of(meta["raw"]), {"raw": torch.tensor(raw, dtype=torch.float64)})


def _no_slope(rate_of: RateOf, points) -> str:
    """Why the derivative is zero or None somewhere: it is so, or autograd has lost it."""
    for raw, (_, slope) in points.items():
        if slope:
            continue
        try:
            cut = _judge(rate_of, raw).verdict == "cut"
        except Undecided:  # a kink
            cut = False
        lost = f"the rate changes with raw, but autograd's derivative is {_number(slope)}: its history is lost"
        return f"At raw = {raw:g} {lost if cut else STUCK}."
    return ""


def _turns(points) -> str:
    """A derivative of both signs is zero in between."""
    slopes = {raw: slope for raw, (_, slope) in points.items()}
    for a, b in zip(RAWS, RAWS[1:], strict=False):
        if slopes[a] * slopes[b] < 0:
            return f"Between raw = {a:g} and {b:g} the rate turns around. Where it turns, {STUCK}."
    return ""


def _wrong_slope(rate_of: RateOf) -> str:
    for raw in SMOOTH:
        report = _judge(rate_of, raw)
        claimed, expected = (
            None if side["raw"] is None else side["raw"].item() for side in (report.claimed, report.expected)
        )
        if report.verdict == "independent" or not claimed and report.verdict == "right":
            return f"At raw = {raw:g} {STUCK}."
        if report.verdict != "right":
            said = f"autograd's derivative is {_number(claimed)}, finite differences give {_number(expected)}"
            return f"At raw = {raw:g} {said}."
    return ""


def _no_start(rate_of: RateOf, raw_of: RateOf, start: float, points) -> str:
    """Why learning cannot start at this rate."""
    raw = raw_of(torch.tensor(start, dtype=torch.float64))
    if not isinstance(raw, Tensor | float | int):
        return f"Your raw_of returned {type(raw).__name__}: return a number."
    raw, rates = torch.as_tensor(raw).item(), [rate for rate, _ in points.values()]
    between = f"your rates lie between {min(rates):.3g} and {max(rates):.3g}"
    if not math.isfinite(raw):
        return f"raw_of({start:g}) is {raw}: no number gives this rate, and {between}."
    there, slope = _point(rate_of, raw)
    if abs(there - start) <= 1e-6 * start:
        return "" if slope else f"At raw_of({start:g}) = {raw:.4g} {STUCK}."
    if not min(rates) <= start <= max(rates):
        return f"Learning cannot start at {start:g}: {between}."
    return f"raw_of({start:g}) is {raw:.4g}, and rate_of makes {there:.4g} of it: learning starts elsewhere."


@exercise("6.2", "Three faults in an outer loop", minutes=10)
def outer_loop(answer: Callable) -> Finding:
    return examine_learning(answer)


@goal(
    "06",
    "classifier ending below 0.2 (outer loss, average of the last ten outer steps), and classifier, random labels with "
    "all else equal",
)
def labels_or_none(runs: list[Run]) -> str:
    ends = {run.settings: _end(run) for run in runs if run.records and not run.error}
    for settings, end in ends.items():
        other = replace(settings, problem="classifier, random labels")
        if settings.problem == "classifier" and end < 0.2 and other in ends:
            side = "above" if ends[other] > math.log(3) else "below"
            return f"classifier ends at {end:.2f}; random labels, all else equal, at {ends[other]:.2f}, {side} ln 3."
    return ""


def _end(run: Run) -> float:
    """The outer loss, averaged over the last ten outer steps: one of them alone is noisy."""
    last = run.records[-10:]
    return sum(record.meta_loss for record in last) / len(last)
