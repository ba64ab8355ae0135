"""For notebook 07: a slope that an answer computes by hand is set beside the engine's, and its graphs are counted."""

import math
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.exercises.checking import Finding
from metalib.exercises.lookalikes import Loss, Model, descend, models
from metalib.exercises.loops import near, raised
from metalib.metagrad import meta_gradient
from metalib.problems import Task
from metalib.report import Undecided

WORDS = {1: "one step", 2: "two", 5: "five", 20: "twenty"}


class Place(NamedTuple):
    """Where a slope is asked for. `inner` is the model's inner loss, or one that counts the graphs made of it."""

    K: int
    model: Model
    inner: Loss
    span: int | None = None

    def __str__(self):
        last = f", the last {self.span}" if self.span else ""
        return f"K = {self.K}{last}, {self.model.name}"

    @property
    def rate(self) -> float:
        """Another one for each model, so that an answer which has a number in its place is wrong on one of them."""
        return 0.08 if self.model.start.dim() else 0.1

    def start(self) -> Tensor:
        return self.model.start.clone().requires_grad_()

    def path(self) -> list[Tensor]:
        """The weights before each step and after the last, each a leaf without a history."""
        rate = torch.tensor(self.rate, dtype=torch.float64)
        ends = (descend(self.start(), rate, steps, self.model.inner) for steps in range(self.K + 1))
        return [w.detach().requires_grad_() for w in ends]

    def engine(self, mode: str, **options) -> float:
        found = meta_gradient(OneTensor(self.model), self.rate, self.K, mode, span=self.span, **options)
        return found.gradient["rate"].item()


class OneTensor(NamedTuple):
    """A model as a problem of the engine's."""

    model: Model

    def initial_weights(self, generator=None):
        return {"w": self.model.start.clone()}

    def sample(self, inner_steps: int, generator=None) -> Task:
        return Task([self.model.inner] * inner_steps, self.model.outer)

    def loss(self, weights, batch: Loss) -> Tensor:
        return batch(weights["w"])


def gradient(loss: Loss, w: Tensor, create_graph: bool = False) -> Tensor:
    return torch.autograd.grad(loss(w), w, create_graph=create_graph)[0]


Slope = Callable[[Place], float]


def places(cases) -> list[Place]:
    """Both models for each (K, span)."""
    return [Place(K, model, model.inner, span) for K, span in cases for model in models()]


def examine_slopes(where: list[Place], answer: Slope, truth: Slope, faults: dict[str, Slope], other: str) -> Finding:
    """The finding on a slope, judged to nine digits. The first miss decides what is said.

    faults  {sentence: the slope that an answer with this fault has}
    other   the sentence when it is none of these
    """
    seen, right = [], []
    for place in where:
        mine, true = _reached(answer, place), truth(place)
        seen.append(f"{place}: yours {mine:.6g}, truth {true:.6g}")
        if not near(mine, true):
            why = _plain(mine, true) or _fault(answer, place, where, faults) or _close(mine, true) or other
            return Finding(False, f"{_after(place, right)}{why}.", seen)
        right.append(place)
    return Finding(True, "", seen)


def _reached(answer: Slope, place: Place) -> float:
    """The answer's slope, or Undecided with a sentence on what it raises."""
    try:
        return answer(place)
    except Undecided:
        raise
    except Exception as error:
        raise Undecided(f"At {place}, it raises {raised(error)}") from error


def _plain(mine: float, true: float) -> str:
    if not math.isfinite(mine):
        return "the slope is not a finite number"
    if mine == 0:
        return "the slope is exactly zero, and the truth is not"
    return "the number is right but for its sign" if near(mine, -true) else ""


def _close(mine: float, true: float) -> str:
    rounded = "it agrees in a few digits only, as a difference of two runs does, or something in float32"
    return rounded if abs(mine - true) < 1e-5 * abs(true) else ""


def _fault(answer: Slope, place: Place, where: list[Place], faults: dict[str, Slope]) -> str:
    """The fault that has the answer's slope at this K on both models; of several such, one that has it everywhere."""

    def among(kinds, places):
        mine = [(place, _reached(answer, place)) for place in places]
        return [kind for kind in kinds if all(near(slope, faults[kind](place)) for place, slope in mine)]

    here = among(faults, [other for other in where if (other.K, other.span) == (place.K, place.span)])
    return next(iter((among(here, where) if len(here) > 1 else []) + here), "")


def _after(place: Place, right: list[Place]) -> str:
    """What was right before the first miss is half of the diagnosis."""
    if any((other.K, other.span) == (place.K, place.span) for other in right):
        return f"Right on {right[-1].model.name}, not on the {place.model.name}: "
    before = [other.K for other in right if other.K < place.K]
    now = WORDS[place.K]
    return f"Right at {WORDS[before[-1]]}, wrong at {now}: " if before else f"Already at {now}: "


class Marked(torch.autograd.Function):
    """The identity. Its node in a graph holds on to `token`, which so lives as long as the graph does."""

    @staticmethod
    def forward(w, token):
        return w.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.token = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent.clone()


class Token:
    """Something that a weak reference can point to."""


def graphs_alive(run: Slope, place: Place) -> int:
    """Of how many evaluations of the inner loss there are graphs at once, at the worst moment of run(place)."""
    alive, most = weakref.WeakSet(), 0

    def inner(w):
        nonlocal most
        token = Token()
        alive.add(token)
        loss = place.model.inner(Marked.apply(w, token))
        del token
        most = max(most, len(alive))
        return loss

    run(place._replace(inner=inner))
    return most


def frugal(finding: Finding, run: Slope, span: int | None = None) -> Finding:
    """The finding, and if it is right: does run hold the graphs of more steps at twenty than at five?"""
    if not finding.solved:
        return finding
    few, many = (graphs_alive(run, place) for place in places([(5, span), (20, span)]) if place.model.start.dim())
    seen = [*finding.seen, f"inner losses whose graphs are alive at once: {few} at K = 5, {many} at K = 20"]
    if many > few:
        why = (
            "The number is right, but the memory grows with K: something holds on to the graphs of steps that are done."
        )
        return Finding(False, why, seen)
    return replace(finding, why="Exact, and twenty steps hold no more graphs than five.", seen=seen)
