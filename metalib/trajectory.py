"""Runs in, their picture out: learned rates and outer losses, live in the lab and static below it."""

import io
import textwrap
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave

from metalib.axes import Range, inside, limits, set_ticks, set_up, thin, widen
from metalib.describe import best_name, best_rate, is_cut, labels, legend_entry, rate_names, sentence
from metalib.figures import COLOURS, STYLES, Picture
from metalib.train import Run

SHOWN = len(COLOURS)  # runs in one picture
DASHES = ("--", "-.", ":", (0, (10, 2)), (0, (1, 4)), (0, (10, 2, 3, 2)), (0, (3, 5)))  # a best rate for each run
Points = tuple[np.ndarray, np.ndarray]


class Seen(NamedTuple):
    """What is drawn of a run of so many records; `cut` when no gradient reached its rate."""

    run: Run
    records: int
    rates: list[Points]
    loss: Points
    cut: bool


def look(run: Run) -> Seen:
    """The points to draw, few enough for the pixels there are."""
    steps = [record.step for record in run.records]
    rates = [thin(steps, [record.rates[name] for record in run.records]) for name in rate_names(run)]
    loss = thin(steps, [record.meta_loss for record in run.records])
    return Seen(run, len(run.records), rates, loss, is_cut(run))


class TrajectoryPlot:
    """Learned rates on the left, outer losses on the right, one colour a run, both axes logarithmic.

    `png(runs)` draws them as they are now: all of them once, then only the last one's lines (blitting), which is cheap.
    """

    def __init__(self):
        self.figure = Figure(dpi=100, facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes = self.left, self.right = self.figure.subplots(1, 2)
        set_up(self.left, "learned learning rate", "outer step")
        set_up(self.right, "outer loss (loss after the inner steps)", "outer step")
        self.background = self.wanted = self.ranges = None
        self.seen: list[Seen] = []

    def png(self, runs: Iterable[Run], running: bool = False) -> bytes:
        """`running` leaves room for the steps that the last run still has before it."""
        runs = list(runs)
        first, names = max(0, len(runs) - SHOWN), labels(runs)[-SHOWN:]
        seen = self._look(runs[-SHOWN:])
        self._lay_out(seen, names, first, running)
        self.canvas.restore_region(self.background)
        self._draw(seen, {len(seen) - 1})
        for message in self.left.texts:
            self.left.draw_artist(message)
        file = io.BytesIO()
        imsave(file, self.canvas.buffer_rgba(), format="png", pil_kwargs={"compress_level": 3})
        return file.getvalue()

    def _draw(self, seen: list[Seen], places: Container[int]) -> None:
        """Draw the lines of the runs at these places onto the canvas."""
        for line, (_, place, _, (xs, ys)) in zip(self.lines, _lines(seen), strict=True):
            if place in places:
                line.set_data(xs, ys)
                line.set_marker("o" if np.count_nonzero(~np.isnan(ys)) == 1 else "")  # one point is no line
                line.axes.draw_artist(line)

    def _look(self, runs: list[Run]) -> list[Seen]:
        """What is drawn of each run, from the last frame where the run has not grown since."""
        known = {(id(seen.run), seen.records): seen for seen in self.seen}
        self.seen = [known.get((id(run), len(run.records))) or look(run) for run in runs]
        return self.seen

    def _lay_out(self, seen: list[Seen], names: list[str], first: int, running: bool) -> None:
        """Draw all that stays from frame to frame, when it has changed; `first` numbers the first run's colour."""
        length, ranges = _length(seen, running), _ranges(seen)
        wanted = [first, running, length, names, [each.records for each in seen[:-1]]]
        wanted += [(each.run.settings, each.run.error, len(each.rates), each.records > 0, each.cut) for each in seen]
        if wanted == self.wanted and all(map(inside, ranges, self.ranges)):
            return
        if wanted != self.wanted:
            self._set_up(seen, names, first, length)
        self.wanted, self.ranges = wanted, tuple(map(widen, ranges))
        for axes, (low, high) in zip(self.axes, self.ranges, strict=True):
            axes.set_ylim(low, high)
            set_ticks(axes.yaxis, high / low)
        self.canvas.draw()
        self._draw(seen, range(len(seen) - 1))
        self.background = self.canvas.copy_from_bbox(self.figure.bbox)

    def _set_up(self, seen: list[Seen], names: list[str], first: int, length: int) -> None:
        """New lines and legend."""
        for axes in self.axes:
            for artist in [*axes.lines, *axes.texts]:
                artist.remove()
            axes.set_xlim(-0.02 * length, 1.02 * length)
        self.lines = []
        for axes, place, style, _ in _lines(seen):
            width = (_width(place), 1.2)[axes]  # losses are noisy: thick lines would merge
            look = {"color": COLOURS[(first + place) % SHOWN], "lw": width, "ms": 5, "animated": True}
            self.lines += self.axes[axes].plot([], [], STYLES[style % len(STYLES)], **look)
        self._annotate(seen, names, first)
        message, colour = _message(seen)
        if message:
            box = {"boxstyle": "round,pad=0.6", "facecolor": "#FFF8E7", "edgecolor": colour}
            look = {"color": colour, "bbox": box, "fontsize": 9, "ha": "center", "va": "bottom", "parse_math": False}
            self.left.text(0.5, 0.06, message, transform=self.left.transAxes, animated=True, **look)

    def _annotate(self, seen: list[Seen], names: list[str], first: int) -> None:
        for legend in self.figure.legends:
            legend.remove()
        handles, bests = [], {}
        for place, (each, name) in enumerate(zip(seen, names, strict=True)):
            run, colour = each.run, COLOURS[(first + place) % SHOWN]
            mark = {"marker": "X", "ms": 10, "mec": "black", "clip_on": False, "zorder": 5} if run.error else {}
            look = mark | {"color": colour, "lw": _width(place)}
            handles += self.left.plot([], [], "-", label=legend_entry(run, name), **look)
            if run.error:
                self.left.plot(*_end(each), "-", color=colour, **mark)
            if best := best_rate(run.settings):
                bests[f"{best_name(run.settings)}: {best:.3g}"] = best
        for dashes, (name, best) in zip(DASHES, bests.items(), strict=False):
            handles.append(self.left.axhline(best, color="#555555", ls=dashes, lw=1.2, label=name))
        longest = max((len(line) for handle in handles for line in handle.get_label().split("\n")), default=0)
        columns = 1 if len(handles) < 3 or longest > 70 else 2
        self._resize(-(-sum(1 + handle.get_label().count("\n") for handle in handles) // columns))
        if handles:
            look = {"ncols": columns, "fontsize": 9, "frameon": False, "handlelength": 3}
            self.figure.legend(handles=handles, loc="lower left", **look)

    def _resize(self, rows: int) -> None:
        """Two plots of a fixed size above a legend of so many rows. A tight layout would cost five times as much."""
        width, plot, legend = 9.6, 3.3, 0.1 + 0.2 * rows
        height = plot + legend
        self.figure.set_size_inches(width, height)
        for axes, start in zip(self.axes, (0.06, 0.565), strict=True):
            axes.set_position((start, (legend + 0.5) / height, 0.415, (plot - 0.85) / height))


def _message(seen: list[Seen]) -> tuple[str, str]:
    """What is written into the left plot, and its colour."""
    error = seen[-1].run.error.partition(". ")[0] if seen else ""  # the rest stands below, in words
    quiet = "press Run" if not seen else "no gradient reaches the rate" if seen[-1].cut else ""
    return textwrap.fill(error or quiet, 48, max_lines=7), "#8B0000" if error else "#555555"


def _width(place: int) -> float:
    """Later lines are thinner, so that one which lies exactly on an earlier one hides only its middle."""
    return 3.2 - 0.2 * place


def _length(seen: list[Seen], running: bool) -> int:
    """How many outer steps the axes span: those that were taken, and those that a running run will take."""
    coming = [seen[-1].run.settings.outer_steps] if seen and (running or not seen[-1].records) else []
    return max([each.records for each in seen] + coming, default=200)


def _end(seen: Seen) -> tuple[float, float]:
    """Where a run died: its last rate that can be drawn, or its start."""
    steps, rates = seen.rates[0]
    drawn = np.flatnonzero(~np.isnan(rates))
    return (steps[drawn[-1]], rates[drawn[-1]]) if len(drawn) else (0, seen.run.settings.start_rate)


def _lines(seen: list[Seen]) -> Iterator[tuple[int, int, int, Points]]:
    """(axes, place of its run, style number, points) of every line: first a run's rates, then its outer loss."""
    for place, each in enumerate(seen):
        for style, points in enumerate(each.rates):
            yield 0, place, style, points
        yield 1, place, 0, each.loss


def _ranges(seen: list[Seen]) -> tuple[Range, Range]:
    marks = [mark for each in seen for mark in (each.run.settings.start_rate, best_rate(each.run.settings)) if mark]
    rates = np.concatenate([marks] + [ys for each in seen for _, ys in each.rates])
    return limits(rates, 0.05, 1.0), limits(np.concatenate([[]] + [each.loss[1] for each in seen]), 0.1, 1.0)


def trajectories(runs: Iterable[Run]) -> Picture:
    """The picture of some runs (the last seven), and a sentence on each that is in it.

    >>> from metalib.settings import Settings
    >>> from metalib.train import complete
    >>> from metalib.trajectory import trajectories
    >>> print(trajectories([complete(Settings(version="data_write", outer_steps=20))]).text)
    data_write, K = 1, start 0.1: rate 0.1 → 0.1 in 20 outer steps; no gradient reaches the rate (best rate 0.481)
    """
    runs = list(runs)
    text = "\n".join([sentence(run, name) for run, name in zip(runs, labels(runs), strict=True)][-SHOWN:])
    return Picture(TrajectoryPlot().png(runs), text)
