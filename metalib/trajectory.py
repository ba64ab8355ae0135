"""Runs in, their picture out: learned rates and outer losses, live in the lab and static below it."""

import io
import math
import textwrap
from collections.abc import Iterable

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.ticker import NullLocator

from metalib.axes import drawable, inside, limits, set_ticks, widen
from metalib.describe import best_rate, is_cut, label, sentence
from metalib.figures import COLOURS, STYLES, Picture
from metalib.settings import Settings
from metalib.train import Run

SHOWN = 7  # runs in one picture; the palette has no more colours


class TrajectoryPlot:
    """Learned rates on the left, outer losses on the right, one colour a run, both axes logarithmic.

    `png(runs)` returns the picture of the runs as they are now. The axes are drawn once and kept; only the lines are
    drawn again (blitting), until the runs outgrow the axes. That makes a frame cheap enough to draw while training.
    """

    def __init__(self):
        self.figure = Figure(dpi=100, facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self.left, self.right = self.figure.subplots(1, 2)
        self.background = self.wanted = self.limits = None

    def png(self, runs: Iterable[Run]) -> bytes:
        runs = list(runs)
        first, runs = max(0, len(runs) - SHOWN), runs[-SHOWN:]
        self._lay_out(runs, first)
        self.canvas.restore_region(self.background)
        for line, (xs, ys) in zip(self.lines, _curves(runs), strict=True):
            line.set_data(xs, ys)
            line.axes.draw_artist(line)
        for message in self.left.texts:
            self.left.draw_artist(message)
        file = io.BytesIO()
        imsave(file, self.canvas.buffer_rgba(), format="png", pil_kwargs={"compress_level": 3})
        return file.getvalue()

    def _lay_out(self, runs: list[Run], first: int) -> None:
        """Draw all that stays from frame to frame, when it has changed; `first` numbers the first run's colour."""
        wanted = [first] + [(run.settings, run.error, bool(run.records), is_cut(run)) for run in runs]
        limits = (_rate_limits(runs), _loss_limits(runs))
        if wanted == self.wanted and all(map(inside, limits, self.limits)):
            return
        if wanted != self.wanted:
            self._set_up(runs, first)
        self.wanted, self.limits = wanted, tuple(map(widen, limits))
        for axes, limit in zip((self.left, self.right), self.limits, strict=True):
            axes.set_ylim(limit)
            set_ticks(axes.yaxis, limit[1] / limit[0])
        self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(self.figure.bbox)

    def _set_up(self, runs: list[Run], first: int) -> None:
        """New axes, lines and legend. Titles have a fixed place and axes no minor ticks: both would double the cost."""
        longest = max([len(run.records) for run in runs] + [run.settings.outer_steps for run in runs[-1:]], default=200)
        titles = ("learned learning rate", "outer loss (loss after the inner steps)")
        for axes, title in zip((self.left, self.right), titles, strict=True):
            axes.clear()
            axes.set(xlim=(-0.02 * longest, 1.02 * longest), yscale="log", xlabel="outer step")
            axes.set_title(title, y=1.02)
            axes.yaxis.set_minor_locator(NullLocator())
            axes.grid(alpha=0.25)
        self.lines = []
        for axes, number, style in _styles(self.left, self.right, runs, first):
            width = _width(number - first) if axes is self.left else 1.2  # losses are noisy: thick lines would merge
            look = {"color": COLOURS[number % len(COLOURS)], "lw": width}
            self.lines += axes.plot([], [], STYLES[style % len(STYLES)], animated=True, **look)
        self._annotate(runs, first)

    def _annotate(self, runs: list[Run], first: int) -> None:
        for legend in self.figure.legends:
            legend.remove()
        handles = []
        for number, run in enumerate(runs, start=first):
            colour = COLOURS[number % len(COLOURS)]
            mark = {"marker": "X", "ms": 10, "mec": "black", "clip_on": False, "zorder": 5} if run.error else {}
            look = mark | {"color": colour, "lw": _width(number - first)}
            handles += self.left.plot([], [], "-", label=_legend(run), **look)
            if run.error:
                x, y = _end(run)
                self.left.plot([x], [y], "-", color=colour, **mark)
        bests = {_best_name(run.settings): best for run in runs if (best := best_rate(run.settings))}
        for style, (name, best) in zip(STYLES[1:] * SHOWN, bests.items(), strict=False):
            name = f"{name}: {best:.3g}"
            handles.append(self.left.axhline(best, color="#555555", ls=style, lw=1.2, label=name))
        longest = max((len(line) for handle in handles for line in handle.get_label().split("\n")), default=0)
        columns = 1 if len(handles) < 3 or longest > 70 else 2
        rows = -(-sum(1 + handle.get_label().count("\n") for handle in handles) // columns)
        self._resize(rows)
        if handles:
            self.figure.legend(handles=handles, loc="lower left", ncols=columns, fontsize=9, frameon=False)
        if runs and runs[-1].error:
            self._message(runs[-1].error, "#8B0000")
        elif runs and is_cut(runs[-1]):
            self._message("no gradient reaches the rate", "#555555")
        elif not runs:
            self._message("press Run", "#555555")

    def _resize(self, rows: int) -> None:
        """Two plots of a fixed size above a legend of so many rows. A tight layout would cost five times as much."""
        width, plot, legend = 9.6, 3.3, 0.1 + 0.2 * rows
        height = plot + legend
        self.figure.set_size_inches(width, height)
        for axes, start in ((self.left, 0.06), (self.right, 0.565)):
            axes.set_position((start, (legend + 0.5) / height, 0.415, (plot - 0.85) / height))

    def _message(self, text: str, colour: str) -> None:
        box = {"boxstyle": "round,pad=0.6", "facecolor": "#FFF8E7", "edgecolor": colour}
        text = "\n".join(textwrap.wrap(text, 48, max_lines=7))
        where = {"transform": self.left.transAxes, "ha": "center", "va": "bottom"}
        self.left.text(0.5, 0.06, text, color=colour, bbox=box, fontsize=9, animated=True, parse_math=False, **where)


def _width(place: int) -> float:
    """Later lines are thinner, so that one which lies exactly on an earlier one hides only its middle."""
    return 3.2 - 0.2 * place


def _best_name(settings: Settings) -> str:
    return f"best rate for {settings.problem}, K = {settings.inner_steps}"


def _legend(run: Run) -> str:
    curves = list(run.records[0].rates) if run.records else []
    styles = ("solid", "dashed", "dash-dotted", "dotted")
    if run.error:
        return f"{label(run.settings)}: ended after {len(run.records)} outer steps"
    if len(curves) < 2:
        return label(run.settings)
    return f"{label(run.settings)}\n({', '.join(f'{c} {styles[i % 4]}' for i, c in enumerate(curves))})"


def _end(run: Run) -> tuple[int, float]:
    """Where a run died: its last record with a rate that can be drawn, or its start."""
    for record in reversed(run.records):
        rate = next(iter(record.rates.values()))
        if math.isfinite(rate) and rate > 0:
            return record.step, rate
    return 0, run.settings.start_rate


def _styles(left, right, runs: list[Run], first: int):
    """(axes, colour number, style number) of every line: first a run's rates, then its outer loss."""
    for number, run in enumerate(runs, start=first):
        curves = len(run.records[0].rates) if run.records else 1
        yield from ((left, number, style) for style in range(curves))
        yield right, number, 0


def _curves(runs: list[Run]):
    """The numbers of the same lines. What a logarithmic axis cannot show (zero, nan, inf) is left out of the line."""
    for run in runs:
        steps = [record.step for record in run.records]
        for curve in run.records[0].rates if run.records else ["rate"]:
            yield steps, drawable(record.rates[curve] for record in run.records)
        yield steps, drawable(record.meta_loss for record in run.records)


def _rate_limits(runs):
    rates = [rate for run in runs for record in run.records for rate in record.rates.values()]
    marks = [run.settings.start_rate for run in runs] + [best for run in runs if (best := best_rate(run.settings))]
    return limits(rates + marks, 0.05, 1.0)


def _loss_limits(runs):
    return limits([record.meta_loss for run in runs for record in run.records], 0.1, 1.0)


def trajectories(runs: Iterable[Run]) -> Picture:
    """The picture of some runs (the last seven), and a sentence on each that is in it."""
    runs = list(runs)
    return Picture(TrajectoryPlot().png(runs), "\n".join(sentence(run) for run in runs[-SHOWN:]))
