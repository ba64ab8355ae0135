"""The check of an inner loop that is written for a module: by the referee, by value, and the module must stay as it is.

A module's weights in one flat tensor make it a `Model`, so that the lookalikes of other exercises serve here as well.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from metalib.exercises.checking import Finding
from metalib.exercises.lookalikes import LOOKALIKES, Model, descend
from metalib.exercises.loops import STEPS, Case, examine_cases, near
from metalib.rates import Meta
from metalib.referee import fresh
from metalib.report import Undecided

Batch = tuple[Tensor, Tensor]
Spread = Callable[[Meta], Tensor]


class Task(NamedTuple):
    """A network, its inner and its outer batch, and the same with all weights in one tensor."""

    net: nn.Module
    inner: Batch
    outer: Batch
    model: Model


class Layers(nn.Module):
    """Linear layers fc1, fc2, … of these sizes, with tanh between them, in float64."""

    def __init__(self, *sizes: int):
        super().__init__()
        for number in range(1, len(sizes)):
            self.add_module(f"fc{number}", nn.Linear(*sizes[number - 1 : number + 1], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.children()
        for layer in hidden:
            x = torch.tanh(layer(x))
        return last(x)


def task(*sizes: int) -> Task:
    """A network of these sizes that should fit a sum of sines, with seeded weights and batches of 20 points."""
    generator, net = torch.Generator().manual_seed(0), Layers(*sizes)
    redraw(net, generator)
    points = torch.randn(2, 20, sizes[0], dtype=torch.float64, generator=generator)
    inner, outer = ((x, x.sin().sum(dim=1, keepdim=True)) for x in points)
    losses = (partial(flat_loss, net, F.mse_loss, batch) for batch in (inner, outer))
    return Task(net, inner, outer, Model("network", flat(net), *losses))


def redraw(net: nn.Module, generator: torch.Generator) -> None:
    """Weights from the generator, in place of those that a module draws from the global one."""
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(0.5 * torch.randn(p.shape, dtype=p.dtype, generator=generator))


def flat(net: nn.Module) -> Tensor:
    """All weights in one tensor, without a history."""
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def flat_loss(net: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], batch: Batch, w: Tensor) -> Tensor:
    """The module's loss on a batch, with its weights taken from one tensor."""
    shapes = {name: p.shape for name, p in net.named_parameters()}
    pieces = w.split([shape.numel() for shape in shapes.values()])
    weights = {name: piece.view(shapes[name]) for name, piece in zip(shapes, pieces, strict=True)}
    return loss(functional_call(net, weights, batch[:1]), batch[1])


def _from_the_start(w, rate, K, loss):
    first = w
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w = first - rate * grad
    return w


REASONS = {
    "still": "this is the loss of the module's own weights: the weights after the last step are not used for it",
    "stale": "every step's gradient is taken at the module's own weights, not at those that the last step gave",
    "from the start": "every step is taken from the first weights, not from those that the last step gave",
    "inner batch": "the outer loss is taken on the inner batch",
    "outer batch": "the inner steps use the outer batch",
    "swapped batches": "the inner and the outer batch have changed places",
}


def examine_module(
    answer: Callable,
    task: Task,
    meta: Meta,
    give: Callable[[Meta], object],
    spread: Spread,
    faults: dict[str, Spread] | None = None,
    reasons: dict[str, str] | None = None,
) -> Finding:
    """The finding on `answer(net, rates, K, inner, outer)`, which should return the outer loss.

    give    what the answer gets for `rates`
    spread  the rate of each number in the flat weights; `faults` are other ways to spread, by the name of their reason
    """

    def step(meta, K):
        net = deepcopy(task.net)
        loss = answer(net, give(meta), K, task.inner, task.outer)
        unchanged(net, task.net)
        return loss

    cases = [
        Case(task.model.name, K, partial(step, K=K), meta, _look(task, K, spread), _lookalikes(task, K, spread, faults))
        for K in STEPS
    ]
    return examine_cases(consistent(cases), REASONS | (reasons or {}))


def _look(task: Task, K: int, spread: Spread, run=descend, first="inner", last="outer") -> Callable[[Meta], Tensor]:
    """The outer loss after `run`, with the inner loss on one batch and the outer loss on another."""
    losses = {"inner": task.model.inner, "outer": task.model.outer}

    def outer_loss(meta):
        return losses[last](run(task.model.start.clone().requires_grad_(), spread(meta), K, losses[first]))

    return outer_loss


def _lookalikes(task: Task, K: int, spread: Spread, faults: dict[str, Spread] | None):
    look = partial(_look, task, K)
    runs = LOOKALIKES | {"from the start": _from_the_start}
    found = {kind: look(fault) for kind, fault in (faults or {}).items()}
    found |= {kind: look(spread, run) for kind, run in runs.items()}
    return found | {
        "inner batch": look(spread, last="inner"),
        "outer batch": look(spread, first="outer"),
        "swapped batches": look(spread, first="outer", last="inner"),
    }


def consistent(cases: list[Case]) -> list[Case]:
    """The same cases, each with those lookalikes only whose outer loss is the answer's in all of them.

    So K - 1 steps are not taken for no steps at K = 1, nor a single step for one too few at K = 2.
    """
    try:
        losses = [case.step(fresh(case.meta)).item() for case in cases]
    except Exception:  # the examination says what is raised, and in which case
        return cases
    kinds = [
        kind
        for kind in cases[0].lookalikes
        if all(
            near(loss, case.lookalikes[kind](fresh(case.meta)).item()) for loss, case in zip(losses, cases, strict=True)
        )
    ]
    return [case._replace(lookalikes={kind: case.lookalikes[kind] for kind in kinds}) for case in cases]


def unchanged(net: nn.Module, own: nn.Module) -> None:
    """Undecided if the weights that the answer was given, `net`, are no longer those of `own`."""
    now, before = net.state_dict(), own.state_dict()
    if list(now) != list(before) or any(not torch.equal(now[name], before[name]) for name in before):
        raise Undecided(
            "Your function changes the module's own weights: the next outer step would start from others, and what is "
            "written into a parameter has no history"
        )
