"""The comparison: the same runs over many seeds and inner steps, drawn as mean and spread.

    found = sweep(grid(Settings(), version=("functional", "first_order"), inner_steps=(1, 2, 5), seed=range(8)))
    show(compared(found))

and as the lab's second tab, which chooses versions, inner steps and the number of seeds, and runs the sweep beside the
kernel's event loop, so that page and kernel stay responsive.
"""

import asyncio
import html
import statistics
import threading
from collections import defaultdict
from collections.abc import Callable

import ipywidgets as widgets
from matplotlib.figure import Figure

from metalib.controls import Plot
from metalib.describe import best_rate
from metalib.figures import COLOURS, STYLES, Picture, picture
from metalib.settings import LIMITS, Settings, whole
from metalib.sweep import Sweep, grid, sweep
from metalib.train import Run, explain
from metalib.versions import VERSIONS

VARIED = ("inner_steps", "seed")  # along the axis, and into the spread


def ends(runs: list[Run]) -> dict[str, dict[int, list[float]]]:
    """{name: {inner steps: the rates at the end, one a seed}}; a run that ended early or never began is left out.

    The name says what tells these runs from the others: their settings beside inner steps and seed, and the rate's name
    where there are several.
    """
    whole_runs = [run for run in runs if run.records and not run.error]
    fields = [name for name in vars(Settings()) if name not in VARIED]
    differing = [name for name in fields if len({getattr(run.settings, name) for run in whole_runs}) > 1] or ["version"]
    found = defaultdict(lambda: defaultdict(list))
    for run in whole_runs:
        words = [str(getattr(run.settings, name)) for name in differing]
        last = run.records[-1].rates
        for rate, value in last.items():
            found[", ".join(words + [rate] * (len(last) > 1))][run.settings.inner_steps].append(value)
    return {name: dict(sorted(places.items())) for name, places in found.items()}


def compared(found: Sweep) -> Picture:
    """Rates at the end against inner steps: the mean over seeds, and as a band the lowest and the highest.

    >>> from metalib.compare import compared
    >>> from metalib.settings import Settings
    >>> from metalib.sweep import grid, sweep
    >>> print(compared(sweep(grid(Settings(outer_steps=20), inner_steps=(1, 2), seed=range(4)))).text)
    functional: 0.261 (0.256 to 0.265) at K = 1; 0.253 (0.249 to 0.257) at K = 2
    """
    figure = Figure(figsize=(7.2, 4.0), dpi=100, layout="constrained", facecolor="white")
    axes, sentences = figure.subplots(), []
    for number, (name, places) in enumerate(ends(found.runs).items()):
        colour, steps = COLOURS[number % len(COLOURS)], list(places)
        means, low, high = zip(*((statistics.mean(v), min(v), max(v)) for v in places.values()), strict=True)
        axes.plot(steps, means, STYLES[number % 4], marker="osv^D"[number % 5], color=colour, label=name)
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        sentences.append(f"{name}: " + "; ".join(map(_numbers, steps, means, low, high)))
    known = {run.settings.inner_steps: best_rate(run.settings) for run in found.runs}
    best = {steps: rate for steps, rate in sorted(known.items()) if rate is not None}
    if best:
        axes.plot(list(best), list(best.values()), color="0.3", ls=":", lw=1.5, label="best rate on average")
    if sentences:
        every = sorted({run.settings.inner_steps for run in found.runs})
        axes.set(xlabel="inner steps K", ylabel="rate at the end", yscale="log", xticks=every)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25)
    left_out = [run for run in found.runs if run.error]
    if left_out:
        sentences.append(f"{len(left_out)} of {len(found.runs)} runs ended early and are left out")
    return picture(figure, "\n".join(sentences) or "no run yet")


def _numbers(steps: int, mean: float, low: float, high: float) -> str:
    return f"{mean:.3g} ({low:.3g} to {high:.3g}) at K = {steps}"


class Comparison(widgets.VBox):
    """The tab. `base` gives the settings of the moment; what is varied is chosen here."""

    def __init__(self, base: Callable[[], Settings]):
        self.base, self.found, self.share, self._stop = base, Sweep([], {}, []), 0.0, threading.Event()
        wide, style = widgets.Layout(width="320px"), {"description_width": "95px"}
        self.versions = widgets.SelectMultiple(
            options=list(VERSIONS), value=("functional", "first_order"), rows=6, description="Versions", layout=wide,
            style=style, tooltip="hold Ctrl or Shift to choose several",
        )  # fmt: skip
        self.steps = widgets.Text("1, 2, 5, 10", description="Inner steps K", layout=wide, style=style)
        self.seeds = widgets.BoundedIntText(8, min=1, max=64, description="Seeds", layout=wide, style=style)
        self.go = widgets.Button(description="Compare", icon="play", button_style="primary")
        self.halt = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.bar = widgets.FloatProgress(max=1.0)
        self.status = widgets.HTML("the other settings are those of the first tab").add_class("compare-status")
        self.image = Plot(value=compared(self.found).png, tooltip="no run yet", layout={"max_width": "100%"})
        self.image.add_class("compare-plot")
        self.go.on_click(lambda _: self._press())
        self.halt.on_click(lambda _: self._stop.set())
        choices = widgets.HBox([self.versions, widgets.VBox([self.steps, self.seeds])])
        super().__init__([choices, widgets.HBox([self.go, self.halt, self.bar]), self.status, self.image])
        self.add_class("lab-comparison")
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def _press(self) -> None:
        if self._loop is None or self._loop.is_closed():
            self.status.value = "there is no event loop here: use sweep() and compared()"
        elif not self.go.disabled:
            self._task = asyncio.run_coroutine_threadsafe(self.run(), self._loop)

    def settings(self) -> list[Settings]:
        """Every combination that is chosen. A ValueError says in a sentence what cannot be."""
        if not self.versions.value:
            raise ValueError("no version is chosen: choose at least one")
        words = [word for word in self.steps.value.replace(",", " ").split()]
        steps = [whole("inner steps", int(w) if w.isdigit() else w, *LIMITS["inner_steps"]) for w in words]
        if not steps:
            raise ValueError("no inner steps are given: write some, such as 1, 2, 5")
        seeds = range(self.base().seed, self.base().seed + self.seeds.value)
        return grid(self.base(), version=self.versions.value, inner_steps=sorted(set(steps)), seed=seeds)

    async def run(self) -> Sweep | None:
        """The same as pressing Compare, for a cell that wants the result. None when it cannot be run."""
        try:
            settings = self.settings()
        except ValueError as error:
            self.status.value = html.escape(str(error))
            return None
        self._stop.clear()
        self.go.disabled, self.halt.disabled = True, False
        try:
            work = asyncio.ensure_future(asyncio.to_thread(sweep, settings, None, self._progress))
            while not work.done():
                self.bar.value = self.share
                self.status.value = f"{self.share:.0%} of {len(settings)} runs"
                await asyncio.wait([work], timeout=0.1)
            self.found = work.result()
            self._show(compared(self.found), *self.found.notes)
        except Exception as error:  # a choice that fails is shown as a sentence, never as a traceback
            self.status.value = html.escape(explain(error))
        finally:
            self._stop.set()  # a cancelled cell ends the thread too
            self.go.disabled, self.halt.disabled = False, True
        return self.found

    def _progress(self, share: float) -> None:
        """Called in the thread that computes."""
        self.share = share
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _show(self, drawn: Picture, *notes: str) -> None:
        self.image.value, self.image.tooltip, self.bar.value = drawn.png, drawn.text, self.share
        self.status.value = "<br>".join(map(html.escape, [*notes, *drawn.text.splitlines()]))
