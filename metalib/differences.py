"""A derivative without autograd: the independent truth behind the referee."""

import math
from collections.abc import Callable
from typing import NamedTuple

EPSILON, SINGLE = 2.0**-52, 2.0**-23  # of float64 and of float32
LEVELS = 40  # halvings of the width: from 5% of x, or 0.0005 near 0, down to less than any rate in use
Function = Callable[[float], float]


class Estimate(NamedTuple):
    """f'(x) and its error. `flat` says that f has a minimum or maximum at x, as far as differences can see."""

    slope: float
    error: float
    flat: bool = False


def estimate(f: Function, x: float, claim: float | None, noise: float, rtol: float) -> Estimate:
    """f'(x) by differences, with a closer look where they contradict the claim.

    `noise` is how much f(x) changes when x changes in its last digits; `f` may return nan outside its domain.
    """
    here, widest = f(x), []

    def both(width):
        up, down = f(x + width), f(x - width)
        if not widest and math.isfinite(up - down):
            widest.append((abs(up - down), abs(up - 2 * here + down), width))
        return (up - down) / (2 * width), max(abs(up), abs(down)), abs(up - 2 * here + down) / width

    def right(width):
        return (f(x + width) - here) / width, abs(here), 0.0

    def left(width):
        return (here - f(x - width)) / width, abs(here), 0.0

    found = _extrapolate(both, x, here, noise, 4)
    for side in (right, left):  # at the edge of the domain
        found = found if math.isfinite(found.slope) else _extrapolate(side, x, here, noise, 2)
    if claim and math.isfinite(claim) and not abs(claim - found.slope) <= rtol * abs(found.slope):
        closer = _confirmed(both, x, claim, rtol)
        if closer is not None:
            found = Estimate(closer, rtol * abs(closer))
        elif math.isfinite(found.slope):  # noise can agree with itself by chance, but hardly at other widths as well
            others = [_extrapolate(both, x, here, noise, 4, scale).slope for scale in (0.83, 0.59)]
            found = Estimate(found.slope, max(found.error, *(abs(other - found.slope) for other in others)))
    odd, even, width = widest[0] if widest else (1.0, 0.0, 0.0)
    level = max(odd, abs(claim or 0.0) * width) <= 1e-7 * even
    return Estimate(found.slope, found.error, level and math.isfinite(found.error))


def _extrapolate(quotient, x: float, here: float, noise: float, factor: int, scale: float = 1.0) -> Estimate:
    """Difference quotients at halving widths, extrapolated to width 0.

    Source: Ridders, Accurate computation of F'(x) and F'(x) F''(x), Advances in Engineering Software 4 (1982). Row i
    holds the estimates at width h / 2^i, each entry cancelling one more power of the width (an even one, with factor 4)
    The error is how far the best entry lies from its two parents, and never less than rounding allows; it is infinite
    where f has a kink at x: there the slopes on either side differ by an amount that does not shrink with the width.
    """
    width, best, error = scale * _first_width(x), math.nan, math.inf
    above, bends, least = [], [0.0], 0.0
    for _ in range(LEVELS):
        value, size, bend = quotient(width)
        bends.append(bend)
        rounding = (16 * EPSILON * size + 4 * noise) / width
        least = (16 * EPSILON * abs(here) + 4 * noise) / width
        row = [value]
        for order, parent in enumerate(above, start=1):
            row.append(row[-1] + (row[-1] - parent) / (factor**order - 1))
            doubt = max(abs(row[-1] - row[-2]), abs(row[-1] - parent), rounding)
            if doubt < error:
                best, error = row[-1], doubt
        if error <= max(1e-10 * abs(best), least):
            break
        above = row[:12] if math.isfinite(value) else []
        width /= 2
    kink = bends[-1] > max(0.75 * bends[-2], 1e-3 * abs(best), 4 * least)
    return Estimate(best, math.inf if kink else error)


def _confirmed(quotient, x: float, slope: float, rtol: float) -> float | None:
    """The difference quotient that agrees with `slope` within `rtol` at two successive widths, or None.

    Before a slope is called wrong, look closer: where a second derivative jumps a hair's breadth from x, as with ELU,
    all wider differences can agree on another value.
    """
    width, before, rounding = _first_width(x), False, math.inf
    for _ in range(LEVELS):
        value, size, _ = quotient(width)
        last, rounding = rounding, 16 * EPSILON * size / width
        if rounding > max(rtol * abs(slope), last) or width < 4 * SINGLE * abs(x):
            return None  # rounding hides what is looked for, or what is float32 inside f stands still
        agrees = rounding <= rtol * abs(slope) and abs(value - slope) <= rtol * abs(slope)
        if agrees and before:
            return value
        before, width = agrees, width / 2
    return None


def _first_width(x: float) -> float:
    return 0.05 * max(abs(x), 0.01)
