"""Many outer loops in one tensor program: every tensor has a first dimension of R runs.

The runs know nothing of each other, so the gradient of the sum of their outer losses for a run's meta-parameters is
that run's meta-gradient. Calling a small operation costs far more than its arithmetic, so a hundred runs take hardly
longer than one. Runs may differ in start rate, in weights and data (their seed), and in their number of inner steps: a
run that is done goes on with a rate of 0.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.func import vmap

from metalib.modes import Found, Loop, Point, Seen, begin, found, gradient
from metalib.optimisers import SGD
from metalib.problems import Batch, Task, Weights
from metalib.rates import Meta
from metalib.trial import check_loss


def batched(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Exact, for R runs at once: reverse mode on the sum of their losses. Rate models must work elementwise.

    `loop` comes from `batched_loop`: its losses give R numbers. The time is that of one run, until the arithmetic
    outweighs the calls; the memory is R times that of `reverse`.
    """
    point, seen = begin(loop)
    for step in range(len(loop.inner)):
        point = _step(loop, meta, point, seen, graph=step > 0)
    outer = loop.outer(point.weights)
    return found(gradient(outer.sum(), meta), outer, point, seen)


def _step(loop: Loop, meta: Meta, point: Point, seen: Seen, graph: bool) -> Point:
    weights = point.weights
    losses = loop.inner[point.step](weights)
    gradients = gradient(losses.sum(), weights, create_graph=graph)
    rates = loop.model(meta, losses if graph else losses.detach(), weights)
    rates = {name: torch.where(loop.counts > point.step, rate, 0.0) for name, rate in rates.items()}
    directions, state = gradients, point.state
    if loop.rule != SGD():
        directions, state = vmap(partial(loop.rule.direction, point.step))(gradients, point.state, weights)
    seen.losses.append(losses.detach())
    seen.rates.append(rates)
    new = {name: w - rates[name].reshape(-1, *[1] * (w.dim() - 1)) * directions[name] for name, w in weights.items()}
    return Point(point.step + 1, new, state)


def stack(tasks: Sequence[Task]) -> Task:
    """R tasks as one, each of its batches with R rows; a task with fewer inner steps repeats its last batch."""
    made: dict[tuple[int, ...], Batch] = {}

    def rows(batches: list[Batch]) -> Batch:
        key = tuple(map(id, batches))  # a problem may give the same batch to every inner step
        if key not in made:
            if odd := [part for batch in batches for part in batch if not isinstance(part, Tensor)]:
                raise ValueError(f"mode 'batched' stacks its runs' batches, and one holds {odd[0]!r}: give tensors")
            made[key] = Batch(*map(torch.stack, zip(*batches, strict=True)))
        return made[key]

    steps = range(max(len(task.inner) for task in tasks))
    inner = [rows([task.inner[min(step, len(task.inner) - 1)] for task in tasks]) for step in steps]
    return Task(inner, rows([task.outer for task in tasks]))


def batched_loop(problem, model, rule, weights: Weights, task: Task, counts: Sequence[int]) -> Loop:
    """One Loop from R runs: `weights` and the batches of `task` have R rows; `counts` are the runs' inner steps."""
    losses = vmap(problem.loss)
    inner = [partial(_losses, losses, batch) for batch in task.inner]
    device = next(iter(weights.values())).device
    return Loop(weights, inner, partial(_losses, losses, task.outer), model, rule, torch.tensor(counts, device=device))


def _losses(losses: Callable[[Weights, Batch], Tensor], batch: Batch, weights: Weights) -> Tensor:
    return check_loss(losses(weights, batch), runs=1)
