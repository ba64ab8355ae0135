"""Logarithmic axes that hold what runs do, an explosion included: their ranges and their ticks."""

import math
from collections.abc import Iterable

from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator

Range = tuple[float, float]


def drawable(values: Iterable[float]) -> list[float]:
    """The values, with nan for what a logarithmic axis cannot show: zero, negative numbers, inf."""
    return [value if math.isfinite(value) and value > 0 else math.nan for value in values]


def limits(values: Iterable[float], low: float, high: float) -> Range:
    """The range of the drawable values, or the given one when there is none.

    It ends six decades from their median, or one run that explodes would flatten all others.
    """
    values = sorted(value for value in drawable(values) if not math.isnan(value))
    if not values:
        return low, high
    median = values[len(values) // 2]
    return max(values[0], median * 1e-6), min(values[-1], median * 1e6)


def inside(inner: Range, outer: Range) -> bool:
    """Whether one range lies in the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def widen(limits: Range) -> Range:
    """Room to grow, a quarter of the range on either side, so that the axes are not drawn again with each new point."""
    room = 1.25 * (limits[1] / limits[0]) ** 0.25
    return limits[0] / room, limits[1] * room


def set_ticks(axis: Axis, ratio: float) -> None:
    """Plain numbers while the axis spans less than three decades, and more of them the less it spans."""
    subs = range(1, 10) if ratio < 6 else (1, 2, 5) if ratio < 1e3 else (1,)
    axis.set_major_locator(MaxNLocator(5) if ratio < 2.5 else LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}" if ratio < 1e3 else LogFormatterSciNotation())
