"""The trajectory lab: choose, press Run, watch the learning rate being learned, press Stop, compare.

A thin shell: `train` computes, `trajectory` draws. The outer loop is a task on the kernel's own event loop and gives
way after every outer step, so the page and the kernel stay responsive. Everything goes to the page through widgets'
synced values; an Output widget would show nothing when a button's callback, and not the cell, started the task.
"""

import asyncio
import base64
import html
import math
import threading
import time
import weakref
from collections.abc import Coroutine
from dataclasses import replace

import ipywidgets as widgets

from metalib.controls import Aim, Plot, arrange, controls, hint
from metalib.describe import sentence
from metalib.figures import Picture
from metalib.settings import Settings, known
from metalib.train import Run, explain, train
from metalib.trajectory import TrajectoryPlot, trajectories

FRAMES_A_SECOND = 10  # unlimited frames would still be arriving in the page long after the loop has ended
_LABS = weakref.WeakSet()


class TrajectoryLab:
    """The widget. Starts with the fields of `Settings` that it is given, and with the goal of a notebook, as in "02".

    `runs` holds every run so far, the broken ones too, until Clear; the plot shows the last seven. Making a new lab
    stops the loop of an earlier one, so that re-running a cell leaves nothing running. A cell that ends with the lab
    shows it; `await lab.run()` presses Run and gives the run; `show(lab.picture())` draws the runs so far.

    >>> from metalib.lab import TrajectoryLab
    >>> TrajectoryLab(version="data_write", inner_steps=5)
    TrajectoryLab: run this cell in Jupyter to use it
    """

    def __init__(self, goal: str = "", **settings):
        self.base, self.aim = Settings(**known(settings)), Aim(goal)
        self.runs: list[Run] = []
        self.plot = TrajectoryPlot()
        self._stop, self._task = threading.Event(), None
        try:
            self._loop = asyncio.get_running_loop()  # callbacks may come on another thread: ipykernel 7.0 to 7.3
        except RuntimeError:
            self._loop = None  # plain Python: there is no page to press Run on
        for other in _LABS:
            other.stop()
        _LABS.add(self)
        self._build()

    def _build(self):
        button = widgets.Layout(width="100px", flex="0 0 auto")
        self.controls = controls(self.base)
        self.go = widgets.Button(description="Run", icon="play", button_style="primary", layout=button)
        self.halt = widgets.Button(description="Stop", icon="stop", layout=button, disabled=True)
        self.wipe = widgets.Button(description="Clear", icon="trash", layout=button)
        self.bar = widgets.IntProgress(max=1, layout=widgets.Layout(width="300px"))
        self.status = widgets.HTML("ready").add_class("lab-status")
        self.hint = widgets.HTML()
        self.image = Plot(
            value=self.plot.png([]), tooltip="no run yet", layout=widgets.Layout(max_width="100%", width="960px")
        ).add_class("trajectory-plot")
        for control, press in ((self.go, self.press_run), (self.halt, self.stop), (self.wipe, self.press_clear)):
            control.on_click(lambda _, press=press: press())
        self.controls["version"].observe(self._show_hint, "value")
        self._show_hint()
        buttons = [self.go, self.halt, self.wipe, self.bar]
        self.panel = arrange(self.controls, self.hint, self.aim, buttons, self.status, self.image)

    def _show_hint(self, _=None):
        self.hint.value = hint(self.controls["version"].value)

    def __repr__(self):
        return "TrajectoryLab: run this cell in Jupyter to use it"

    def _repr_mimebundle_(self, **_):
        """The live widget, and for readers without a kernel the picture of the runs so far."""
        view = {"model_id": self.panel.model_id, "version_major": 2, "version_minor": 0}
        return {
            "text/plain": repr(self),
            "image/png": base64.b64encode(self.image.value).decode(),
            "application/vnd.jupyter.widget-view+json": view,
        }

    # What the buttons do.

    @property
    def running(self) -> bool:
        return self.go.disabled

    def settings(self) -> Settings:
        """What the controls say now. Raises ValueError with one sentence when it cannot be run."""
        chosen = {name: control.value for name, control in self.controls.items()}
        return replace(self.base, **chosen)

    def press_run(self) -> None:
        if self.running:
            return
        if not self._has_loop():
            self._say("there is no event loop here: use `await lab.run()`, or train() in a for loop", "warning")
            return
        self._task = asyncio.run_coroutine_threadsafe(self.run(), self._loop)

    def _has_loop(self) -> bool:
        return self._loop is not None and not self._loop.is_closed()

    def stop(self) -> None:
        """End the run after its outer step, also one that was asked for and has not begun."""
        self._stop.set()

    def press_clear(self) -> None:
        """Clear on the loop's thread: on a button's own it would change the runs while they are drawn."""
        self._loop.call_soon_threadsafe(self.clear) if self._has_loop() else self.clear()

    def clear(self) -> None:
        """Forget the finished runs; one that is running goes on and stays."""
        self.runs[:] = self.runs[-1:] if self.running else []
        self._draw()
        if not self.running:
            self._say("ready", "")

    def picture(self) -> Picture:
        """The last runs as a static picture with a sentence on each."""
        return trajectories(self.runs)

    def run(self) -> Coroutine[None, None, Run | None]:
        """Run the outer loop with the controls' values, drawing as it goes. None when they cannot be run.

        Await it. An earlier Stop is forgotten here, in the call, so that one which comes before the beginning counts.
        """
        if not self.running:
            self._stop.clear()
        return self._run()

    async def _run(self) -> Run | None:
        if self.running:
            return None
        if self._stop.is_set():
            return self._say("stopped before the first outer step", "warning")
        try:
            settings = self.settings()
        except ValueError as error:
            return self._say(str(error), "warning")
        run = Run(settings)
        self.runs.append(run)
        self._lock(True)
        self._say("starting", "info")
        try:
            await asyncio.sleep(0)
            await self._follow(run)
        except Exception as error:  # a choice that fails is shown as a sentence, never as a traceback
            run.error = explain(error)
        finally:
            self._finish(run)
        return run

    async def _follow(self, run: Run) -> None:
        self.bar.value, self.bar.max, self.bar.bar_style = 0, run.settings.outer_steps, "info"
        due = -math.inf
        for record in train(run.settings):
            run.records.append(record)
            if (began := time.monotonic()) > due:
                self._draw()
                self.bar.value = record.step + 1
                self._say(f"outer step {record.step + 1} of {run.settings.outer_steps}", "info")
                ended = time.monotonic()
                due = ended + max(1 / FRAMES_A_SECOND, 4 * (ended - began))  # a fifth of the time for drawing, at most
            await asyncio.sleep(0)
            if self._stop.is_set():
                return

    def _finish(self, run: Run) -> None:
        self.bar.value = len(run.records)
        stopped = not run.error and len(run.records) < run.settings.outer_steps
        word, style = ("stopped: ", "warning") if stopped else ("", "danger" if run.error else "success")
        self._say(word + sentence(run), style)
        self._lock(False)  # before the drawing: should that fail, the lab can still be used
        self._draw()

    def _draw(self) -> None:
        self.image.value = self.plot.png(self.runs, self.running)
        if not self.running:
            self.image.tooltip = "\n".join(map(sentence, self.runs)) or "no run yet"  # the image has no other text
            self.aim.look(self.runs)

    def _say(self, text: str, style: str) -> None:
        self.status.value = html.escape(text)
        self.bar.bar_style = style

    def _lock(self, running: bool) -> None:
        self.go.disabled, self.halt.disabled = running, not running
        for control in self.controls.values():
            control.disabled = running
