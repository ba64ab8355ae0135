"""The lab's controls: one widget for each setting that it offers, what is written beside them, where all stand."""

import html
import re

import ipywidgets as widgets
from traitlets import Unicode

from metalib.describe import symptom
from metalib.exercises import goal
from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.settings import Settings, devices
from metalib.train import Run
from metalib.versions import VERSIONS

HELP = {
    "version": "how the inner loop updates the weights",
    "problem": "what the weights are fitted to",
    "rate": "what is learned: one rate, a rate for each tensor, or a rate from the loss",
    "inner_steps": "updates of the weights before the outer loss is taken",
    "outer_steps": "updates of the learned rate, from 1 to 10,000",
    "device": "where every tensor of the run lives",
    "start_rate": "the learning rate at the first outer step, above 0",
    "meta_rate": "the step size of Adam on the meta-parameters, above 0",
    "seed": "chooses data and initial weights, from 0",
    "carry": "start each outer step with the weights that the last one ended with",
}


def controls(settings: Settings) -> dict[str, widgets.Widget]:
    """One control for each setting that the lab offers, by the setting's name."""
    here = [name for name, reason in devices().items() if not reason]

    def make(kind, name, description, width="260px", **options):
        style, layout = {"description_width": "95px"}, widgets.Layout(width=width)
        return kind(description=description, tooltip=HELP[name], style=style, layout=layout, **options)

    made = {
        "version": make(widgets.Dropdown, "version", "Version", options=list(VERSIONS)),
        "problem": make(widgets.Dropdown, "problem", "Problem", "300px", options=list(PROBLEMS)),
        "rate": make(widgets.Dropdown, "rate", "Rate model", options=list(RATES)),
        "inner_steps": make(widgets.IntSlider, "inner_steps", "Inner steps K", min=1, max=20),
        "outer_steps": make(widgets.BoundedIntText, "outer_steps", "Outer steps", "300px", min=1, max=10_000),
        "device": make(widgets.Dropdown, "device", "Device", options=here),
        "start_rate": make(widgets.FloatText, "start_rate", "Start rate"),
        "meta_rate": make(widgets.FloatText, "meta_rate", "Meta rate", "300px"),
        "seed": make(widgets.BoundedIntText, "seed", "Seed", min=0, max=2**32 - 1),
        "carry": make(widgets.Checkbox, "carry", "Carry weights over", indent=False),
    }
    made["inner_steps"].max = max(20, settings.inner_steps)
    made["outer_steps"].max = max(10_000, settings.outer_steps)
    for name, control in made.items():
        control.value = getattr(settings, name)
    return made


def device_note() -> str:
    """Which devices this machine lacks, and why; "" when it has them all."""
    return "; ".join(f"{name} cannot be chosen: {reason}" for name, reason in devices().items() if reason)


def hint(version: str) -> str:
    """A version's symptom as HTML."""
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(symptom(version)))
    return f"<b>{version}</b>: {text}"


class Plot(widgets.Image):
    """An image with a text for those who do not see it: its tooltip, which a screen reader reads."""

    description = Unicode("").tag(sync=True)  # the page looks for one before it shows a tooltip, and an Image has none


class Aim(widgets.HTML):
    """What to reach with the lab, and whether its runs do: the goal of a notebook, or nothing."""

    def __init__(self, notebook: str):
        self.goal = None if isinstance(notebook, str) and not notebook else goal(notebook)
        super().__init__()
        self.add_class("lab-goal")
        self.look([])

    def look(self, runs: list[Run]) -> None:
        if self.goal is not None:
            reached = self.goal.reached(runs)
            found = f"☑ <b>Goal reached.</b> {html.escape(reached)}" if reached else "☐ <b>Goal, not reached yet.</b>"
            self.value = f"{found} <small>{html.escape(self.goal.text)}</small>"


def arrange(controls: dict[str, widgets.Widget], *below: widgets.Widget | list[widgets.Widget]) -> widgets.VBox:
    """The lab's panel: three controls a row, the note on devices beside the last, then each of `below` in a row."""
    wrap = widgets.Layout(flex_flow="row wrap")
    *made, carry = controls.values()
    note = widgets.HTML(f"<small>{html.escape(device_note())}</small>")
    rows = [made[first : first + 3] for first in range(0, len(made), 3)] + [[carry, note], *below]
    rows = [widgets.HBox(row, layout=wrap) if isinstance(row, list) else row for row in rows]
    return widgets.VBox(rows).add_class("trajectory-lab")
