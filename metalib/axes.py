"""Logarithmic axes that hold what runs do, an explosion included: the points to draw, the ranges and the ticks."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullLocator

Range = tuple[float, float]
SMALLEST, LARGEST = 1e-300, 1e300  # closer to the ends of float64, the arithmetic of ticks and ranges overflows
COLUMNS = 800  # twice the pixels that a plot is wide, since a column of points can lie across two of pixels


def drawable(values: Sequence[float]) -> np.ndarray:
    """The values, with nan for what a logarithmic axis cannot show: zero, negative numbers, inf."""
    values = np.asarray(values, dtype=float)
    return np.where((values >= SMALLEST) & (values <= LARGEST), values, np.nan)


def thin(steps: Sequence[int], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that can be seen: the first, the lowest, the highest and the last of each column."""
    steps, values = np.asarray(steps), drawable(values)
    size = -(-len(values) // COLUMNS)
    if size <= 4:
        return steps, values
    places = np.arange(-(-len(values) // size) * size).clip(max=len(values) - 1).reshape(-1, size)
    lowest = np.nan_to_num(values, nan=np.inf)[places].argmin(axis=1)
    highest = np.nan_to_num(values, nan=-np.inf)[places].argmax(axis=1)
    rows = np.arange(len(places))
    kept = np.unique([places[:, 0], places[rows, lowest], places[rows, highest], places[:, -1]])
    return steps[kept], values[kept]


def limits(values: Sequence[float], low: float, high: float) -> Range:
    """The range of the drawable values, or the given one when there is none.

    It ends six decades from their median, or one run that explodes would flatten all others.
    """
    values = drawable(values)
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return low, high
    median = values[len(values) // 2]
    return max(values[0], median * 1e-6), min(values[-1], median * 1e6)


def inside(inner: Range, outer: Range) -> bool:
    """Whether one range lies in the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def widen(inner: Range) -> Range:
    """Room to grow, a quarter of the range on either side, so that the axes are not drawn again with each new point."""
    low, high = inner
    room = 1.25 * (high / low) ** 0.25
    return max(low / room, SMALLEST), min(high * room, LARGEST)


def set_up(axes: Axes, title: str, xlabel: str) -> None:
    """What stays for good. Free places for titles and labels, and minor ticks, would double what a drawing costs."""
    axes.set(yscale="log", xlabel=xlabel)
    axes.set_title(title, y=1.02)
    axes.xaxis.set_label_coords(0.5, -0.12)
    axes.yaxis.set_label_coords(0, 0.5)
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.25)


def set_ticks(axis: Axis, ratio: float) -> None:
    """Plain numbers while the axis spans less than three decades, and more of them the less it spans."""
    subs = range(1, 10) if ratio < 6 else (1, 2, 5) if ratio < 1e3 else (1,)
    axis.set_major_locator(MaxNLocator(5) if ratio < 2.5 else LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}" if ratio < 1e3 else LogFormatterSciNotation())
