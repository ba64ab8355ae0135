"""The check of an outer loop that carries its weights over: the rates that it learns, and the graph that it builds."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.exercises.checking import Finding
from metalib.exercises.lookalikes import Model, models
from metalib.exercises.loops import RAISED, STEPS, raised
from metalib.report import reachable

OUTER_STEPS, START, META_RATE = 6, 0.1, 0.05
Learn = Callable[..., list[float]]


def learn(
    w, log_rate, K, loss, outer_loss, outer_steps, *, carry=True, cut=True, cut_inside=False, retain=False,
    create_graph=True, zero_grad=True, new_optimiser=False, maximize=False, late=False,
):  # fmt: skip
    """The outer loop as it should be, and with one thing done differently, as it often is."""
    start, rates, optimiser = w, [], None
    for _ in range(outer_steps):
        if new_optimiser or optimiser is None:
            optimiser = torch.optim.Adam([log_rate], lr=META_RATE, maximize=maximize)
        w = (w if not cut else w.detach().requires_grad_()) if carry else start.detach().requires_grad_()
        for _ in range(K):
            w = w.detach().requires_grad_() if cut_inside else w
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = w - log_rate.exp() * grad
        if zero_grad:
            optimiser.zero_grad()
        outer_loss(w).backward(retain_graph=retain)
        rates += [log_rate.exp().item()] if late else []
        optimiser.step()
        rates += [] if late else [log_rate.exp().item()]
    return rates


def _steps_more(more: int) -> Learn:
    return lambda w, log_rate, K, *losses: learn(w, log_rate, K + more, *losses)


def _inner_twice(w, log_rate, K, loss, outer_loss, outer_steps) -> list[float]:
    return learn(w, log_rate, K, loss, loss, outer_steps)


def _with(**change) -> Learn:
    return lambda *given: learn(*given, **change)


LOOKALIKES: dict[str, Learn] = {
    "the weights start anew in each outer step: they are not carried over": _with(carry=False),
    "the gradients of all outer steps add up: the old one is not cleared before the next": _with(zero_grad=False),
    "the optimiser is made anew in each outer step, and forgets what it has seen": _with(new_optimiser=True),
    "only the last inner step is differentiated: the weights are cut in every inner step": _with(cut_inside=True),
    "the inner gradient is not differentiated, so the rate follows the first-order gradient": _with(create_graph=False),
    "the rate walks up the outer loss": _with(maximize=True),
    "each rate is that from before the outer step, not the one that it leads to": _with(late=True),
    "the rate follows the inner loss: the outer one is to be differentiated": _inner_twice,
    "there is one inner step less than was asked for": _steps_more(-1),
    "there is one inner step more than was asked for": _steps_more(1),
}
RETAINED = _with(cut=False, retain=True)
STILL = {
    "None": "no gradient reaches the rate: on the way to the outer loss the weights, or the rate, lose their history",
    "zero": "the gradient of the rate is exactly zero: it was filled in, or multiplied away",
    "number": "a gradient reaches the rate, but does not move it: it is cleared before the optimiser's step, or "
    "there is no such step",
}
WHY = RAISED | {
    "backward through the graph a second time": "the weights that are carried over still remember the outer step "
    "before, whose graph has been freed",
    "does not require grad": "autograd is asked for a gradient where nothing requires one: weights without a history "
    "require a gradient only if they are told to",
}


class Seen(NamedTuple):
    """What a loop returned, the gradients that reached the rate, and how large the graph was behind each outer loss."""

    rates: list
    gradients: list[Tensor]
    nodes: list[int]


def watch(run: Learn, model: Model, K: int) -> Seen:
    """Run an outer loop. Raises what it raises."""
    nodes, gradients = [], []

    def outer_loss(w):
        value = model.outer(w)
        nodes.append(graph_size(value))
        return value

    start, log_rate = model.start.clone().requires_grad_(), torch.tensor(START, dtype=torch.float64).log()
    log_rate.requires_grad_().register_hook(lambda gradient: gradients.append(gradient.detach().clone()))
    rates = run(start, log_rate, K, model.inner, outer_loss, OUTER_STEPS)
    if isinstance(rates, list | tuple):
        rates = [rate.item() if isinstance(rate, Tensor) and rate.numel() == 1 else rate for rate in rates]
    return Seen(rates, gradients, [count for count in nodes if count] or [0])


def graph_size(value: Tensor) -> int:
    """How many operations autograd remembers behind this value."""
    return len(reachable([value.grad_fn]))


def examine_outer_loop(answer: Learn) -> Finding:
    """The finding on `answer(w, log_rate, K, loss, outer_loss, outer_steps)`, a list of the learned rates.

    It should carry the weights over, cut between outer steps and nowhere else, and step with Adam.
    """
    seen, right = [], []
    for K in STEPS:
        for model in models():
            line, fault = _judge(answer, model, K)
            seen.append(f"K = {K}, {model.name}: {line}")
            if fault:
                before = _before(right, model, K)
                return Finding(False, f"{before}{fault if before else fault[0].upper() + fault[1:]}.", seen)
            right.append((K, model.name))
    return Finding(True, "Right at one, two and five inner steps, and the graph does not grow.", seen)


def _before(right: list[tuple[int, str]], model: Model, K: int) -> str:
    """What was right before the first fault is half of the diagnosis."""
    if right and right[-1][0] == K:
        return f"Right on {right[-1][1]}, not on the {model.name}: "
    return {1: "", 2: "Right at one inner step, wrong at two: ", 5: "Right at two inner steps, wrong at five: "}[K]


def _judge(answer: Learn, model: Model, K: int) -> tuple[str, str]:
    """(what was measured, the fault or "")."""
    truth = watch(learn, model, K).rates
    try:
        mine = watch(answer, model, K)
    except Exception as error:
        return "raises", f"it raises {raised(error, WHY)}"
    if not _are_rates(mine.rates):
        short = isinstance(mine.rates, list) and len(mine.rates) != OUTER_STEPS
        what = f"a list of {len(mine.rates)}" if short else f"{mine.rates!r:.60}"
        return "no rates", f"your function returned {what}: return a list with {OUTER_STEPS} numbers, the rates"
    line = f"rate {START:g} → {mine.rates[-1]:.6g}, and should reach {truth[-1]:.6g}"
    growth = f"{mine.nodes[0]} operations behind the first outer loss, {mine.nodes[-1]} behind the last"
    grows = mine.nodes[-1] > 1.5 * mine.nodes[0]
    if _same(mine.rates, truth):
        return line, f"the rates are right, but the graph grows in each outer step: {growth}" if grows else ""
    if _same(mine.rates, watch(RETAINED, model, K).rates):
        return line, f"the gradient passes through all earlier outer steps, and the graph grows: {growth}"
    return line, _kind(mine, model, K) or (f"the graph grows: {growth}" if grows else _first_difference(mine, truth))


def _kind(mine: Seen, model: Model, K: int) -> str:
    """The fault by which these wrong rates are known, or ""."""
    if len(set(mine.rates)) == 1:
        return STILL["None" if not mine.gradients else "number" if any(map(Tensor.any, mine.gradients)) else "zero"]
    return next((why for why, look in LOOKALIKES.items() if _same(mine.rates, watch(look, model, K).rates)), "")


def _first_difference(mine: Seen, truth: list[float]) -> str:
    for digits in (6, 12):
        for step, rates in enumerate(zip(mine.rates, truth, strict=True), start=1):
            rate, right = (f"{number:.{digits}g}" for number in rates)
            if rate != right:
                return f"the rate after outer step {step} is {rate}, and should be {right}"
    return "the rates differ from the right ones in their last digits"


def _are_rates(rates) -> bool:
    listed = isinstance(rates, list) and len(rates) == OUTER_STEPS
    return listed and all(isinstance(rate, float | int) for rate in rates)


def _same(ours: list[float], theirs: list[float]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(ours, theirs, strict=True))
