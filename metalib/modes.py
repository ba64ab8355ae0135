"""The meta-gradient of an inner loop by reverse mode: whole, in segments, or with something left out.

All modes share one signature, those in `forward.py` and `batched.py` as well:

    found = mode(loop, meta, span)

    loop    a Loop: where it starts, its losses, its rate model and its optimiser
    meta    {name: leaf that requires grad}, the meta-parameters
    span    a number of inner steps; only `checkpointed` and `truncated` have a use for it

What they cost, for P numbers in the meta-parameters and K inner steps, where 1 is an inner loss with its gradient, and
a Hessian-vector product is about as much again:

| mode         | time in inner gradients | memory beyond the weights                                           |
|--------------|-------------------------|---------------------------------------------------------------------|
| reverse      | about 3 K               | the graphs of all K steps                                           |
| forward      | about (1 + P) K         | P tangents as large as the weights, and the graph of one step       |
| checkpointed | about 4 K               | the weights at every span-th step, and the graphs of span steps     |
| truncated    | about K + 2 span        | the graphs of the last span steps                                   |
| first_order  | about K                 | K gradients                                                         |

The first three are exact, the last two are not. Where an inner loop starts does not depend on the meta-parameters, so
the first inner gradient is a constant, and no mode builds a graph for it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.optimisers import SGD, Adam, Clipped, State
from metalib.problems import Weights
from metalib.rates import Meta
from metalib.versions import InnerLoss


class Loop(NamedTuple):
    """An inner loop, ready to run: one loss function a step, each weights -> scalar, and that of the outer loss."""

    weights: Weights
    inner: list[InnerLoss]
    outer: InnerLoss
    model: Callable[[Meta, Tensor, Weights], Weights]
    rule: SGD | Adam | Clipped
    counts: Tensor | None = None  # for `batched`: each run's inner steps


class Point(NamedTuple):
    """How far a loop has come: steps taken, the weights and the optimiser's state after them."""

    step: int
    weights: Weights
    state: State


class Seen(NamedTuple):
    """The inner losses, each before its step, and the rates of each step."""

    losses: list[Tensor]
    rates: list[Weights]


class Found(NamedTuple):
    """A meta-gradient, and what the loop saw on the way. Nothing here has a graph."""

    gradient: Meta
    outer_loss: Tensor
    weights: Weights
    inner_losses: list[Tensor]
    rates: list[Weights]


def begin(loop: Loop) -> tuple[Point, Seen]:
    return Point(0, leaves(loop.weights), loop.rule.start(loop.weights)), Seen([], [])


def leaves(tensors: Weights) -> Weights:
    return {name: t.detach().requires_grad_() for name, t in tensors.items()}


def detached(tensors: Weights) -> Weights:
    return {name: t.detach() for name, t in tensors.items()}


def gradient(outputs, inputs: Weights, weighting=None, **graph: bool | None) -> Weights:
    """torch.autograd.grad by name, with zeros where an input has no part in the outputs."""
    grads = torch.autograd.grad(outputs, list(inputs.values()), weighting, allow_unused=True, **graph)
    pairs = zip(inputs.items(), grads, strict=True)
    return {name: torch.zeros_like(tensor) if grad is None else grad for (name, tensor), grad in pairs}


def cut(point: Point) -> Point:
    """The same numbers without their history."""
    return Point(point.step, leaves(point.weights), tuple(map(detached, point.state)))


def inner_step(loop: Loop, meta: Meta, point: Point, seen: Seen, graph: bool, keep: bool | None = None) -> Point:
    """One inner step. Without `graph` its gradient is a constant; `keep` lets the rate depend on the loss even so."""
    loss = loop.inner[point.step](point.weights)
    gradients = gradient(loss, point.weights, create_graph=graph, retain_graph=keep)
    if seen.rates and getattr(loop.model, "steady", False):
        rates = seen.rates[-1]
    else:
        rates = loop.model(meta, loss if graph or keep else loss.detach(), point.weights)
    directions, state = loop.rule.direction(point.step, gradients, point.state, point.weights)
    seen.losses.append(loss.detach())
    seen.rates.append(rates)
    # w - rate * d in one operation: with two, 784-256-10 was measured to take 2.2 MiB a step, with one 0.9
    weights = {name: w.addcmul(rates[name], directions[name], value=-1) for name, w in point.weights.items()}
    return Point(point.step + 1, weights, state)


def finish(loop: Loop, meta: Meta, point: Point, seen: Seen) -> Found:
    """The outer loss, and backward through all that has a graph."""
    outer = loop.outer(point.weights)
    return found(gradient(outer, meta), outer, point, seen)


def found(by_meta: Meta, outer: Tensor, point: Point, seen: Seen) -> Found:
    known = {}  # a constant rate is one tensor under all names
    rates = [{n: known.setdefault(id(r), r.detach()) for n, r in each.items()} for each in seen.rates]
    return Found(by_meta, outer.detach(), detached(point.weights), seen.losses, rates)


def reverse(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Exact. The plain functional unroll: one graph through all inner steps, then backward through it."""
    point, seen = begin(loop)
    for step in range(len(loop.inner)):
        point = inner_step(loop, meta, point, seen, graph=step > 0)
    return finish(loop, meta, point, seen)


def truncated(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Biased. Only the last `span` steps (5 if not said) are differentiated; the steps before count as constants.

    The rate is judged by what its last steps do, so what is learned is too small (notebook 07). On
    PROBLEMS["classifier"], at a rate of 0.1 and with a span of 5, the gradient is 55% too small at K = 10 and 79% at
    K = 20, in the mean over 100 tasks.
    """
    point, seen = begin(loop)
    first = max(0, len(loop.inner) - (span or 5))
    for step in range(len(loop.inner)):
        point = cut(point) if step <= first else point
        point = inner_step(loop, meta, point, seen, graph=step > first)
    return finish(loop, meta, point, seen)


def first_order(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Biased from two steps on. Each inner gradient is a constant: no second derivative is ever taken.

    On PROBLEMS["classifier"], at a rate of 0.1, the gradient is 12% too large at K = 5 and 22% at K = 10, in the mean
    over 100 tasks. On the single weight at K = 2 it learns a rate of 0.89 where 0.47 is best (notebook 05).
    """
    point, seen = begin(loop)
    for _ in loop.inner:
        point = inner_step(loop, meta, point, seen, graph=False, keep=True)
    return finish(loop, meta, point, seen)


def checkpointed(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Exact, for many meta-parameters or long unrolls: keep the weights at every `span`-th step, rebuild the rest.

    `span` is √K if not said, which keeps about √K weight vectors and √K graphs. With a span of 1 all K weight vectors
    are kept and one step's graph: one Hessian-vector product a step, back along the stored trajectory. The time is the
    same for every span: one more inner gradient a step than `reverse` needs.
    """
    point, seen = begin(loop)
    starts, steps = [], len(loop.inner)
    span = min(span or math.isqrt(steps - 1) + 1, steps)
    for step in range(steps):
        if step % span == 0:
            starts.append(point)
        point = cut(inner_step(loop, meta, point, seen, graph=False))
    outer = loop.outer(point.weights)
    adjoint = [*gradient(outer, point.weights).values()]
    adjoint += [torch.zeros_like(t) for slot in point.state for t in slot.values()]
    total = {name: torch.zeros_like(p) for name, p in meta.items()}
    while starts:
        by_meta, adjoint = _segment(loop, meta, starts.pop(), span, adjoint)
        total = {name: t + by_meta[name] for name, t in total.items()}
    return found(total, outer, point, seen)


def _segment(loop: Loop, meta: Meta, start: Point, span: int, adjoint: list[Tensor]) -> tuple[Meta, list[Tensor]]:
    """Run the steps from `start` on again, now with a graph, and pull the outer loss's gradient back through them."""
    start = point = Point(start.step, leaves(start.weights), tuple(map(leaves, start.state)))
    for step in range(start.step, min(start.step + span, len(loop.inner))):
        point = inner_step(loop, meta, point, Seen([], []), graph=step > 0)
    outputs = [(t, a) for t, a in zip(_tensors(point), adjoint, strict=True) if t.requires_grad]
    ends, weighting = zip(*outputs, strict=True)
    inputs = dict(enumerate([*meta.values(), *_tensors(start)]))
    grads = [*gradient(ends, inputs, weighting).values()]
    return dict(zip(meta, grads, strict=False)), grads[len(meta) :]


def _tensors(point: Point) -> list[Tensor]:
    return [*point.weights.values(), *(t for slot in point.state for t in slot.values())]
