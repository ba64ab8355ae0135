"""Notebook 01, its third exercise: a slope by differences. The check watches where the answer asks the function."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from metalib.exercises.checking import Finding, exercise
from metalib.exercises.lookalikes import descend, models

Function = Callable[[float], float]
DIGITS = 1e-8


class Place(NamedTuple):
    """A function, where its slope is asked for, and the slope there."""

    name: str
    f: Function
    x: float
    slope: float


def places() -> list[Place]:
    """From 0.001 to 10,000: each function changes on the scale of its x, as a loss does on that of its rate."""
    return [
        Place("exp(x)", math.exp, 1.3, math.exp(1.3)),
        Place("10 + log(x)", lambda x: 10 + math.log(x), 2.7, 1 / 2.7),
        Place("1 / x", lambda x: 1 / x, 0.0013, -1 / 0.0013**2),
        Place("x² + 300 x", lambda x: x**2 + 300 * x, 11e3, 2 * 11e3 + 300),
        Place("cos(1000 x)", lambda x: math.cos(1000 * x), 0.0017, -1000 * math.sin(1.7)),
        Place("√x", math.sqrt, 730.0, 0.5 / math.sqrt(730.0)),
        _network(),
    ]


def _network() -> Place:
    """The outer loss of the network after five inner steps, as a function of the rate."""
    model, at = models()[1], 0.1

    def loss(rate):
        return model.outer(descend(model.start.clone().requires_grad_(), rate, 5, model.inner))

    rate = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(rate), rate)
    name = "outer loss of a network after 5 steps"
    return Place(name, lambda x: loss(torch.as_tensor(x, dtype=torch.float64)).item(), at, slope.item())


@exercise("1.3", "A slope to eight digits", minutes=8)
def slope_to_eight_digits(answer: Callable[[Function, float], float]) -> Finding:
    seen, widths = [], []
    for place in places():
        asked = []

        def watched(x, place=place, asked=asked):
            asked.append(float(x.detach() if isinstance(x, torch.Tensor) else x))
            return place.f(asked[-1])

        value = number(answer(watched, place.x))
        if value is None:
            return Finding(False, "Your function returned nothing that is a number: return the slope.", seen)
        off = abs(value / place.slope - 1)
        seen.append(f"{place.name} at {place.x:g}: yours {value:.9g}, truth {place.slope:.9g}")
        widths.append(max((abs(x - place.x) for x in asked), default=0.0))
        if not off <= DIGITS:  # true of nan as well
            return Finding(False, _why(place, value, asked, widths), seen)
    return Finding(True, f"Right to eight digits at {len(seen)} of {len(seen)} places.", seen)


def number(value) -> float | None:
    """What a reader's function returned as a plain number, if it is one."""
    try:
        return float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _why(place: Place, value: float, asked: list[float], widths: list[float]) -> str:
    """The first fault that shows in the number, then the first that shows in where the function was asked."""
    if not asked:
        return "Your function never asks f for a value."
    for factor, why in FACTORS.items():
        if abs(value - factor * place.slope) <= 1e-3 * abs(place.slope):
            return why
    away = [(x - place.x) / place.x for x in asked]
    width = max(map(abs, away))
    if width == 0:
        return f"You ask f only at x = {place.x:g} itself: one value has no slope."
    if all(x == torch.tensor(x, dtype=torch.float32).item() for x in asked):
        return "Every x that you ask f for is a float32 number: seven digits go in, so eight cannot come out."
    if len(widths) > 1 and abs(widths[-1] / widths[0] - 1) < 1e-3:
        start = f"Right at the first places, not where x is {place.x:g}: "
        return f"{start}your points lie {widths[0]:.1g} away from every x, however large or small that x is."
    if min(away) >= 0 or max(away) <= 0:
        return f"All points lie on one side of x. {ONE_SIDED}"
    size = f"Your points lie {width:.1g} times x away"
    if width > 1e-4:
        return f"{size}: too far. Over such a width f is not straight, and you get the slope of a chord."
    if width < 1e-7:
        return f"{size}: too near. The two values agree in most digits, and their difference is made of rounding."
    return f"The slope is off by {abs(value / place.slope - 1):.1g} of itself."


FACTORS = {
    0.0: "The slope is zero, and the truth is not.",
    -1.0: "The number is right but for its sign.",
    2.0: "Twice the right slope: the two points lie two widths apart.",
    0.5: "Half the right slope: divide by the distance of the two points.",
}
ONE_SIDED = (
    "The error is then proportional to the width, and no width is narrow enough for eight digits and wide enough to "
    "keep clear of rounding."
)
