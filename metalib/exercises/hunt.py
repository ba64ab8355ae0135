"""Notebook 10: two loops with two faults each, where one fault hides the other."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from metalib.describe import is_cut
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import LOOKALIKES, Descend, models
from metalib.exercises.loops import examine_loop
from metalib.train import Run

HIDDEN = "A second fault is hidden behind this one; it shows when this one is mended."
LAST = "This is the last of the two faults."
NEW = "Neither of the two faults that the loop came with shows here: this one is new."


@exercise("10.1", "The eleventh loop: one fault shows", minutes=6)
def eleventh(answer: Descend) -> Finding:
    reasons = {"cut": "no gradient arrives, although the outer loss changes with the rate"}
    finding = examine_loop(answer, reasons=reasons)
    return _count(finding, answer, _rate_is_cut, _gradient_is_constant)


@exercise("10.2", "The twelfth loop: the repair that raises", minutes=8)
def twelfth(answer: Descend) -> Finding:
    finding = examine_loop(answer, loop=momentum, lookalikes=MOMENTUM, reasons=REASONS)
    return _count(finding, answer, _only_the_last_step_counts, _writes_in_place)


def _count(finding: Finding, answer: Descend, *faults: Callable[[Descend], bool]) -> Finding:
    """The finding, with a sentence on how many of the loop's own faults are left."""
    if finding.solved or not callable(answer) or "does not depend" in finding.why:
        return finding
    left = sum(fault(answer) for fault in faults)
    return Finding(False, f"{finding.why} {(NEW, LAST, HIDDEN)[left]}", finding.seen)


def _slope(run: Descend, K: int, wrt: str) -> Tensor | None:
    """d outer loss / d the rate, or / d the first weights, on the network; None where autograd has no number."""
    model = models()[1]
    leaves = {
        "rate": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "weights": model.start.clone().requires_grad_(),
    }
    try:
        loss = model.outer(run(leaves["weights"], leaves["rate"], K, model.inner))
        return torch.autograd.grad(loss, leaves[wrt], allow_unused=True)[0]
    except Exception:  # the reader's code: what it raises is the finding's to tell
        return None


def _same(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and torch.allclose(a, b, rtol=1e-6, atol=0)


def _rate_is_cut(answer: Descend) -> bool:
    return _slope(answer, 1, "weights") is not None and _slope(answer, 1, "rate") is None


def _gradient_is_constant(answer: Descend) -> bool:
    """The way back to the first weights passes through the inner gradients, whether or not the rate is cut."""
    return _same(_slope(answer, 2, "weights"), _slope(LOOKALIKES["first order"], 2, "weights"))


def _only_the_last_step_counts(answer: Descend) -> bool:
    return _same(_slope(answer, 2, "rate"), _slope(MOMENTUM["last step"], 2, "rate"))


class _Writes(TorchFunctionMode):
    """Notes whether a tensor is written to in place."""

    seen = False
    OPERATORS = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__setitem__")
    HARMLESS = ("requires_grad_", "detach_", "retain_grad")

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        method = name.endswith("_") and not name.endswith("__") and name not in self.HARMLESS
        self.seen |= method or name in self.OPERATORS
        return func(*args, **(kwargs or {}))


def _writes_in_place(answer: Descend) -> bool:
    with _Writes() as writes:
        _slope(answer, 2, "weights")
    return writes.seen


def momentum(
    w: Tensor,
    rate: Tensor,
    K: int,
    loss: Callable[[Tensor], Tensor],
    create_graph: bool = True,
    pull: tuple[float, float] = (0.9, 1.0),
    weights: Callable[[Tensor], Tensor] = lambda w: w,
    memory: Callable[[Tensor], Tensor] = lambda v: v,
) -> Tensor:
    """K steps with momentum. `weights` is done to the weights before a step, `memory` to the velocity after it."""
    v = torch.zeros_like(w)
    for _ in range(K):
        w = weights(w)
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
        v = pull[0] * v + pull[1] * grad
        w = w - rate * v
        v = memory(v)
    return w


def _leaf(w: Tensor) -> Tensor:
    return w.detach().requires_grad_()


def _with(**options) -> Descend:
    return lambda w, rate, K, loss: momentum(w, rate, K, loss, **options)


def _steps_from_cut_weights(w, rate, K, loss):
    v = torch.zeros_like(w)
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        v = 0.9 * v + grad
        w = w.detach() - rate * v
    return w


def _stale(w, rate, K, loss):
    (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
    return momentum(w, rate, K, lambda w: (w * grad).sum())


MOMENTUM: dict[str, Descend] = {
    "cut": lambda w, rate, K, loss: momentum(w, rate.detach(), K, loss),
    "first order": _with(create_graph=False),
    "last step": _with(weights=_leaf),
    "velocity cut": _with(memory=torch.Tensor.detach),
    "weights cut": _steps_from_cut_weights,
    "uphill": lambda w, rate, K, loss: momentum(w, -rate, K, loss),
    "too few": lambda w, rate, K, loss: momentum(w, rate, K - 1, loss) + 0 * rate,
    "too many": lambda w, rate, K, loss: momentum(w, rate, K + 1, loss),
    "one step": lambda w, rate, K, loss: momentum(w, rate, 1, loss),
    "stale": _stale,
    "plain": _with(pull=(0.0, 1.0)),
    "average": _with(pull=(0.9, 0.1)),
}
REASONS = {
    "first order": "no inner gradient is differentiated: it was asked for without a graph, or it went into the "
    "velocity without one",
    "velocity cut": "the velocity keeps its value from step to step, and drops its history",
    "plain": "the steps are those of plain gradient descent: nothing of the last velocity is in the next",
    "average": "the velocity is an average here; the loop of this exercise adds the whole gradient to it",
    "last step": "only the last use of the rate counts: before it the weights lose their history",
}


@goal("10", "four different versions whose line stays flat, and one whose line moves and is wrong all the same")
def told_apart(runs: list[Run]) -> str:
    flat = list(dict.fromkeys(run.settings.version for run in runs if is_cut(run) and not run.error))
    moving = [run for run in runs if _moves(run) and run.settings.version == "first_order"]
    if len(flat) < 4 or not moving:
        return ""
    K = moving[0].settings.inner_steps
    return (
        f"No gradient reaches the rate of {', '.join(flat)}. At K = {K} that of first_order moves, by a wrong number."
    )


def _moves(run: Run) -> bool:
    """At one inner step first order is right."""
    return run.settings.inner_steps > 1 and len(run.records) > 1 and run.records[0].rates != run.records[-1].rates
