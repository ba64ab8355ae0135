"""The trajectory lab: choose, press Run, watch the learning rate being learned, press Stop, compare.

    lab = TrajectoryLab(version="data_write", inner_steps=5)
    lab                  # a cell that ends so shows the widget
    await lab.run()      # the same as pressing Run, for a cell that wants the result
    lab.picture()        # the static picture of the runs so far, for show()

A thin shell: `train` computes, `trajectory` draws. The outer loop is a task on the kernel's own event loop and gives
way after every outer step, so the page and the kernel stay responsive. Everything goes to the page through widgets'
synced values; an Output widget would show nothing when a button's callback, and not the cell, started the task.
"""

import asyncio
import base64
import html
import re
import threading
import time
import weakref
from dataclasses import replace

import ipywidgets as widgets

from metalib.controls import controls, device_note
from metalib.describe import sentence
from metalib.figures import Picture
from metalib.settings import Settings
from metalib.train import Run, explain, train
from metalib.trajectory import TrajectoryPlot, trajectories
from metalib.versions import symptom

FRAMES_A_SECOND = 10  # unlimited frames would still be arriving in the page long after the loop has ended
_LABS = weakref.WeakSet()


class TrajectoryLab:
    """The widget. Takes the fields of `Settings` as keywords and starts with them.

    `runs` holds every run so far, the broken ones too, until Clear; the plot shows the last seven. Making a new lab
    stops the loop of an earlier one, so that re-running a cell leaves nothing running.
    """

    def __init__(self, **settings):
        self.base = Settings(**settings)
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
        self.image = widgets.Image(
            value=self.plot.png([]), format="png", layout=widgets.Layout(max_width="100%", width="960px")
        ).add_class("trajectory-plot")
        self.go.on_click(lambda _: self.press_run())
        self.halt.on_click(lambda _: self.stop())
        self.wipe.on_click(lambda _: self.press_clear())
        self.controls["version"].observe(lambda _: self._show_hint(), "value")
        self._show_hint()
        *made, carry = self.controls.values()
        wrap = widgets.Layout(flex_flow="row wrap")
        note = widgets.HTML(f"<small>{html.escape(device_note())}</small>")
        self.panel = widgets.VBox(
            [
                *(widgets.HBox(made[first : first + 3], layout=wrap) for first in range(0, len(made), 3)),
                widgets.HBox([carry, note], layout=wrap),
                self.hint,
                widgets.HBox([self.go, self.halt, self.wipe, self.bar], layout=wrap),
                self.status,
                self.image,
            ]
        ).add_class("trajectory-lab")

    def _show_hint(self):
        name = self.controls["version"].value
        text = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(symptom(name)))
        self.hint.value = f"<b>{name}</b>: {text}"

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
        if self._loop is None:
            self._say("there is no event loop here: use `await lab.run()`, or train() in a for loop", "warning")
            return
        self._task = asyncio.run_coroutine_threadsafe(self.run(), self._loop)

    def stop(self) -> None:
        self._stop.set()

    def press_clear(self) -> None:
        """Clear on the loop's thread: on a button's own it would change the runs while they are drawn."""
        self._loop.call_soon_threadsafe(self.clear) if self._loop else self.clear()

    def clear(self) -> None:
        """Forget the finished runs; one that is running goes on and stays."""
        self.runs[:] = self.runs[-1:] if self.running else []
        self._draw()
        if not self.running:
            self._say("ready", "")

    def picture(self) -> Picture:
        """The last runs as a static picture with a sentence on each."""
        return trajectories(self.runs)

    async def run(self) -> Run | None:
        """Run the outer loop with the controls' values, drawing as it goes. None when they cannot be run."""
        if self.running:
            return None
        try:
            settings = self.settings()
        except ValueError as error:
            self._say(str(error), "warning")
            return None
        run = Run(settings)
        self.runs.append(run)
        self._stop.clear()
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
        drawn = 0.0
        for record in train(run.settings):
            run.records.append(record)
            if time.monotonic() - drawn > 1 / FRAMES_A_SECOND:
                self._draw()
                self.bar.value = record.step + 1
                self._say(f"outer step {record.step + 1} of {run.settings.outer_steps}", "info")
                drawn = time.monotonic()
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
        self.image.value = self.plot.png(self.runs)

    def _say(self, text: str, style: str) -> None:
        self.status.value = html.escape(text)
        self.bar.bar_style = style

    def _lock(self, running: bool) -> None:
        self.go.disabled, self.halt.disabled = running, not running
        for control in self.controls.values():
            control.disabled = running
