"""The check of an inner loop: judged by the referee, at 1, 2 and 5 steps, on one weight and on a network."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.exercises.checking import Finding
from metalib.exercises.lookalikes import LOOKALIKES, Descend, Model, descend, models
from metalib.rates import Meta
from metalib.referee import fresh, referee
from metalib.report import Undecided, short

STEPS = (1, 2, 5)
WORDS = {1: "one step", 2: "two", 5: "five"}


class Case(NamedTuple):
    """One thing to measure: the reader's outer loss beside the right one, and the loops that it may resemble."""

    where: str
    K: int
    step: Callable[[Meta], Tensor]
    meta: Meta
    truth: Callable[[Meta], Tensor]
    lookalikes: dict[str, Callable[[Meta], Tensor]]


REASONS = {
    "cut": "the outer loss changes with the rate, but no gradient arrives: some line keeps the value and drops the "
    "history",
    "zero": "the gradient is exactly zero, but the outer loss changes with the rate: it was filled in, or multiplied "
    "away, and not computed",
    "first order": "the inner gradient is not differentiated, so this is the first-order gradient",
    "last step": "only the last step is differentiated: the weights lose their history before it",
    "weights cut": "the step keeps its history, but the weights that it is taken from do not",
    "sign": "the number is right but for its sign",
    "still": "the weights have not moved",
    "uphill": "the weights walk up the loss: the sign of the update is wrong",
    "too few": "there is one step less than was asked for",
    "too many": "there is one step more than was asked for",
    "one step": "there is a single step, however many were asked for",
    "stale": "every step uses the gradient at the first weights: compute the loss anew in each step",
    "other loss": "the outer loss is not the one that these steps lead to, so this is another program",
    "independent": "the outer loss does not depend on the rate at all",
    "nan": "the outer loss or its gradient is not a finite number",
    "wrong": "autograd gives a number, but finite differences give another: a part of the history is lost",
}
RAISED = {
    "a leaf Variable": "a leaf that requires grad may not be written to",
    "modified by an inplace operation": "something that autograd had saved for the backward pass was overwritten",
    "does not require grad": "autograd finds no graph where it is asked for a gradient: the weights were cut off from "
    "it before",
    "backward through the graph a second time": "a graph was used after it had been freed",
    "not have been used in the graph": "the gradient is asked for a tensor that the loss was not computed from",
}


def examine_loop(answer: Descend, rate: float = 0.1, loop: Descend = descend, lookalikes=None, reasons=None) -> Finding:
    """The finding on `answer(w, rate, K, loss)`, which should return the weights after K steps of `loop`.

    `w` arrives as a fresh leaf that requires grad, `rate` as a tensor, `loss` as a function of the weights. More
    `lookalikes` and other `reasons` may be given by name.
    """
    meta, looks = {"rate": torch.tensor(rate, dtype=torch.float64)}, LOOKALIKES | (lookalikes or {})

    def outer(model: Model, K: int, run: Descend):
        def step(meta):
            w = run(model.start.clone().requires_grad_(), meta["rate"], K, model.inner)
            return model.outer(weights(w, model.start))

        return step

    cases = (
        Case(model.name, K, outer(model, K, answer), meta, outer(model, K, loop), look)
        for K in STEPS
        for model in models()
        for look in [{kind: outer(model, K, run) for kind, run in looks.items()}]
    )
    return examine_cases(cases, reasons)


def weights(w, start: Tensor) -> Tensor:
    """The weights that an answer returned, or Undecided when these cannot be weights."""
    what = f"a tensor of shape {tuple(w.shape)}" if isinstance(w, Tensor) else type(w).__name__
    if not isinstance(w, Tensor) or w.shape != start.shape:
        wanted = f"a tensor of shape {tuple(start.shape)}, the weights after the last step"
        raise Undecided(f"your function returned {what}: return {wanted}")
    return w


def examine_cases(cases: Iterable[Case], reasons: dict[str, str] | None = None) -> Finding:
    """Judge the cases in order. The first that is not right decides what is said."""
    seen, right = [], []
    for case in cases:
        kind, line = _judge(case)
        seen.append(f"K = {case.K}, {case.where}: {line}")
        if kind != "right":
            reason = kind if kind.startswith("it raises") else (REASONS | (reasons or {}))[kind]
            return Finding(False, _sentence(case, right, reason), seen)
        right.append(case)
    return Finding(True, "Right at one, two and five steps.", seen)


def raised(error: Exception, known: dict[str, str] = RAISED) -> str:
    """The class of what an answer raises, and what that means or, where it is not known, its message's stable part."""
    message = str(error).partition("\n")[0].partition(". Hint")[0].partition(": [")[0]
    return f"{type(error).__name__}: {next((why for part, why in known.items() if part in message), message)}"


def _judge(case: Case) -> tuple[str, str]:
    """(a key of REASONS, "right" or what it raises; the line for the reader)."""
    report = referee(case.step, case.meta)
    if report.error is not None:
        return f"it raises {raised(report.error)}", "raises"
    if report.verdict == "nan":
        return "nan", "not finite"
    claimed, expected = (
        ", ".join(map(short, side.values())) if len(side) > 1 else short(next(iter(side.values())))
        for side in (report.claimed, report.expected)
    )
    loss, truth = (run(fresh(case.meta)).item() for run in (case.step, case.truth))
    line = f"autograd {claimed}, finite differences {expected}: {report.verdict}"
    if near(loss, truth):
        return ("right" if report.verdict == "right" else _wrong(case, report, loss)), line
    found = next((kind for kind, look in case.lookalikes.items() if near(loss, look(fresh(case.meta)).item())), None)
    return found or "other loss", f"{line}; outer loss {loss:.6g}, but it should be {truth:.6g}"


def _wrong(case: Case, report, loss: float) -> str:
    """Why the gradient of the right loss is wrong."""
    if report.verdict == "independent":
        return "independent"
    mine = [report.claimed[name] for name in case.meta]
    if all(gradient is None for gradient in mine):
        return "cut"
    if not any(gradient.any() for gradient in mine if gradient is not None):
        return "zero"
    if _same(mine, [-report.expected[name] for name in case.meta]):
        return "sign"
    for kind, look in case.lookalikes.items():
        leaves = fresh(case.meta)
        value = look(leaves)
        if value.requires_grad and near(loss, value.item()):
            theirs = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
            if _same(mine, theirs):
                return kind
    return "wrong"


def near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def _same(ours, theirs) -> bool:
    pairs = list(zip(ours, theirs, strict=True))
    if any((a is None) != (b is None) for a, b in pairs):
        return False
    return all(a is None or torch.allclose(a, b.detach(), rtol=1e-6, atol=0) for a, b in pairs)


def _sentence(case: Case, right: list[Case], reason: str) -> str:
    """What was right before the first fault is half of the diagnosis."""
    before = {other.K for other in right} - {case.K}
    if any(other.K == case.K for other in right):
        start = f"Right on {right[-1].where}, not on the {case.where}: "
    elif before:
        start = f"Right at {WORDS[max(before)]}, wrong at {WORDS[case.K].removesuffix(' step')}: "
    else:
        start = ""
    return start + reason[0].upper() * (not start) + reason[bool(not start) :] + "."
