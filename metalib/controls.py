"""The lab's controls: one widget for each setting that it offers."""

import ipywidgets as widgets

from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.settings import Settings, devices
from metalib.versions import VERSIONS


def controls(settings: Settings) -> dict[str, widgets.Widget]:
    """One control for each setting that the lab offers, by the setting's name."""
    wide = {"style": {"description_width": "95px"}, "layout": widgets.Layout(width="275px")}
    here = [name for name, reason in devices().items() if not reason]
    made = {
        "version": widgets.Dropdown(options=list(VERSIONS), description="Version", **wide),
        "problem": widgets.Dropdown(options=list(PROBLEMS), description="Problem", **wide),
        "rate": widgets.Dropdown(options=list(RATES), description="Rate model", **wide),
        "device": widgets.Dropdown(options=here, description="Device", **wide),
        "inner_steps": widgets.IntSlider(min=1, max=20, description="Inner steps K", **wide),
        "outer_steps": widgets.BoundedIntText(min=1, max=10_000, description="Outer steps", **wide),
        "start_rate": widgets.FloatText(description="Start rate", **wide),
        "meta_rate": widgets.FloatText(description="Meta rate", **wide),
        "seed": widgets.BoundedIntText(min=0, max=2**32 - 1, description="Seed", **wide),
        "carry": widgets.Checkbox(description="Carry weights over", indent=False, layout=widgets.Layout(width="180px")),
    }
    made["inner_steps"].max = max(20, settings.inner_steps)
    for name, control in made.items():
        control.value = getattr(settings, name)
    return made


def device_note() -> str:
    """Which devices this machine lacks, and why; "" when it has them all."""
    return "; ".join(f"{name} cannot be chosen: {reason}" for name, reason in devices().items() if reason)
