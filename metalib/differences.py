"""A derivative without autograd: the independent truth behind the referee."""

import math
from collections.abc import Callable

EPSILON = 2.0**-52  # float64


def central_difference(f: Callable[[float], float], x: float) -> tuple[float, float]:
    """(f'(x), its error): central differences at halving widths, extrapolated to width 0.

    Source: Ridders, Accurate computation of F'(x) and F'(x) F''(x), Advances in Engineering Software 4 (1982). Row i
    holds the estimates at width h / 2^i, each entry cancelling one more even power of the width; the error is how far
    the best entry lies from its two parents, and never less than rounding allows. (nan, inf) when f is not finite near
    x, and an infinite error where f has a kink at x: there the slopes to the left and to the right differ by an amount
    that does not shrink with the width.
    """
    here, width = f(x), 0.05 * max(abs(x), 0.01)
    best, error, above, bends = math.nan, math.inf, [], [0.0]
    for _ in range(12):
        up, down = f(x + width), f(x - width)
        rounding = 16 * EPSILON * max(abs(up), abs(down)) / width
        bends.append(abs(up - 2 * here + down) / width)
        row = [(up - down) / (2 * width)]
        for order, parent in enumerate(above, start=1):
            row.append(row[-1] + (row[-1] - parent) / (4**order - 1))
            doubt = max(abs(row[-1] - row[-2]), abs(row[-1] - parent), rounding)
            if doubt < error:
                best, error = row[-1], doubt
        if error <= max(1e-10 * abs(best), rounding):
            break
        above = row if math.isfinite(row[0]) else []
        width /= 2
    kink = bends[-1] > max(0.75 * bends[-2], 1e-3 * abs(best), 4 * rounding)
    return best, math.inf if kink else error


def slope_at(f: Callable[[float], float], x: float, claim: float | None, rtol: float) -> tuple[float, float]:
    """(f'(x), its error) by `central_difference`, with a closer look where that contradicts the claim."""
    slope, error = central_difference(f, x)
    if claim and not abs(claim - slope) <= rtol * abs(slope):
        closer = confirmed(f, x, claim, rtol)
        if closer is not None:
            return closer, rtol * abs(closer)
    return slope, error


def confirmed(f: Callable[[float], float], x: float, slope: float, rtol: float) -> float | None:
    """The difference quotient that agrees with `slope` within `rtol` at two successive widths, or None.

    Before a slope is called wrong, look closer: where a second derivative jumps a hair's breadth from x, as with ELU,
    all wider differences can agree on another value.
    """
    width, before = 0.05 * max(abs(x), 0.01), False
    for _ in range(26):
        up, down = f(x + width), f(x - width)
        quotient, rounding = (up - down) / (2 * width), 16 * EPSILON * max(abs(up), abs(down)) / width
        agrees = max(rounding, abs(quotient - slope)) <= rtol * abs(slope)
        if agrees and before:
            return quotient
        before, width = agrees, width / 2
    return None
