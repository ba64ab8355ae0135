"""One call for the meta-gradient, whatever the problem, the rate, the optimiser and the way to compute it.

    found = meta_gradient(PROBLEMS["classifier"], 0.1, inner_steps=5)
    found.gradient         {"rate": d outer loss / d rate}
    found.mode, found.why  how it was computed, and why so

All modes are exact but `truncated` and `first_order`; what each costs is told in `modes.py`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.batched import batched, batched_loop, stack
from metalib.choice import choose
from metalib.forward import forward
from metalib.inputs import (
    check_shapes,
    count_runs,
    for_each,
    known,
    look_once,
    usable_model,
    usable_task,
    usable_weights,
)
from metalib.modes import Loop, checkpointed, first_order, reverse, truncated
from metalib.optimisers import SGD, Adam, Clipped, check_rule
from metalib.own import as_problem
from metalib.problems import Batch, Task, Weights
from metalib.randomness import Draws, drawing
from metalib.rates import Learned, Meta, learned
from metalib.settings import one_of, whole
from metalib.trial import OUTSIDE, check_loss, check_unwritten, in_words, transformed
from metalib.unroll import fresh_leaves

MODES = {mode.__name__: mode for mode in (reverse, forward, checkpointed, truncated, first_order, batched)}
MOST_STEPS = 1_000_000
Generator = torch.Generator | None


class MetaGradient(NamedTuple):
    """A meta-gradient and what the inner loop saw, all without a graph; which mode computed it, and why that one.

    >>> from metalib import meta_gradient
    >>> from metalib.problems import PROBLEMS
    >>> found = meta_gradient(PROBLEMS["one weight"], 0.1, inner_steps=2)
    >>> list(found.gradient), len(found.inner_losses), found.mode
    (['rate'], 2, 'reverse')
    """

    gradient: Meta
    outer_loss: Tensor
    weights: Weights
    inner_losses: list[Tensor]
    rates: list[Weights]
    mode: str
    why: str


def meta_gradient(
    problem,
    rate: float | Tensor | Meta | Learned,
    inner_steps: int | Sequence[int],
    mode: str = "auto",
    *,
    optimiser: SGD | Adam | Clipped = SGD(),  # noqa: B008
    span: int | None = None,
    weights: Weights | None = None,
    task: Task | Sequence[Task] | None = None,
    generator: Generator | Sequence[Generator] = None,
) -> MetaGradient:
    """d outer loss / d rate after `inner_steps` steps of the inner loop.

    problem     what is fitted: one of PROBLEMS, FromModule(your module, …), your own three functions as there, or just
                a function loss(weights, batch), when `weights` and `task` are given
    rate        a number; {weight name: number}, a rate for each tensor; or Learned(model, meta) for a rate model
    mode        one of MODES, where each says what it costs, or "auto", which picks an exact one
    optimiser   the inner one: SGD(), with momentum and so on, Adam(), or Clipped(norm, rule)
    span        a number of steps: how many `truncated` differentiates, how far apart `checkpointed` keeps weights
    weights     where the inner loop starts; by default problem.initial_weights(generator)
    task        its batches; by default problem.sample(inner_steps, generator)
    generator   the source of all random numbers, by default one with the seed 0; dropout needs one that is given

    `batched` computes R runs at once: `rate` then holds R numbers instead of each one; inner_steps, task and generator
    may be sequences of R; `weights`, and all that comes back, have a first dimension of R.

    A loss of your own must be a function of the weights and the batch alone, and may be differentiated twice. That of
    a `torch.autograd.Function` in it is held against differences, in float64, when the loss is first met: define both
    once, outside of the outer loop. Whatever your own code raises comes out of here as it is.

    Raises ValueError, with a sentence, for a choice that cannot be, and inside transforms of torch.func. A run that
    explodes gives inf or nan as they come.

    >>> import torch
    >>> from metalib import meta_gradient
    >>> from metalib.problems import Task
    >>> start, data = {"w": torch.tensor(0.0)}, Task(inner=[3.0, 3.0], outer=3.0)
    >>> found = meta_gradient(lambda w, y: (w["w"] - y) ** 2, 0.1, inner_steps=2, weights=start, task=data)
    >>> print(f"{found.gradient['rate']:.3f}")
    -36.864
    """
    one_of("mode", mode, ["auto", *MODES])
    check_rule(optimiser)
    problem = as_problem(problem, weights, task)
    if span is not None:
        whole("span", span, 1, MOST_STEPS)
    with torch.inference_mode(False), torch.enable_grad(), in_words(mode):
        draws = Draws(generator if mode != "batched" else None)
        make = _batched_loop if mode == "batched" else partial(_loop, draws)
        loop, meta = make(problem, rate, inner_steps, optimiser, weights, task, generator)
        with draws.watched():
            mode, why = choose(loop, meta) if mode == "auto" else (mode, "as asked")
            found = MODES[mode](loop, meta, span)
        if transformed(found.outer_loss):
            raise ValueError(OUTSIDE)
        return MetaGradient(*found, mode, why)


def _loop(draws: Draws, problem, rate, inner_steps, optimiser, weights, task, source) -> tuple[Loop, Meta]:
    whole("inner_steps", inner_steps, 1, MOST_STEPS)
    source = source or torch.Generator().manual_seed(0)
    weights = usable_weights(problem.initial_weights(source) if weights is None else weights)
    task = usable_task(problem.sample(inner_steps, source) if task is None else task, inner_steps)
    if hasattr(problem, "check"):
        problem.check(weights, task.inner[0])
    model, meta = learned(rate, weights)
    check_shapes(model, meta, weights)
    losses = [partial(_loss, problem, batch) for batch in task.inner]
    if not hasattr(problem, "check") and not known(problem):
        losses[0] = partial(_first_loss, problem, task.inner[0])
    inner = [draws.seeded(each) for each in losses]
    return Loop(weights, inner, draws.seeded(partial(_loss, problem, task.outer)), usable_model(model), optimiser), meta


def _loss(problem, batch: Batch, weights: Weights) -> Tensor:
    return check_loss(problem.loss(dict(weights), batch))


def _first_loss(problem, batch: Batch, weights: Weights) -> Tensor:
    """The loss of a first inner step, looked at as it goes by: a problem with a check of its own has had its own."""
    kept = {name: w.detach().clone() for name, w in weights.items()}
    loss = _loss(problem, batch, weights)
    check_unwritten(kept, weights)
    look_once(problem, loss, weights, batch)
    return loss


def _batched_loop(problem, rate, inner_steps, optimiser, weights, tasks, source) -> tuple[Loop, Meta]:
    """R runs: weights and data from one generator are the same for all, those from R generators are each run's own."""
    source = source or torch.Generator().manual_seed(0)
    sources = [*source] if isinstance(source, Sequence) else [source]
    starts = [problem.initial_weights(each) for each in sources] if weights is None else [weights]
    starts = [usable_weights(start) for start in starts]
    model, meta = learned(rate, starts[0])
    runs = count_runs(meta)
    counts = [whole("inner_steps", steps, 1, MOST_STEPS) for steps in for_each("inner_steps", inner_steps, runs)]
    if tasks is None and len(sources) == 1:
        longest = problem.sample(max(counts), source)
        tasks = [longest._replace(inner=longest.inner[:steps]) for steps in counts]
    elif tasks is None:
        tasks = [problem.sample(*each) for each in zip(counts, for_each("generator", sources, runs), strict=True)]
    if weights is None:
        each = for_each("generator", starts if len(starts) > 1 else starts[0], runs)
        starts = [{name: torch.stack([start[name] for start in each]) for name in each[0]}]
    weights = starts[0]
    tasks = [usable_task(*each) for each in zip(for_each("task", tasks, runs), counts, strict=True)]
    if any(not w.dim() or len(w) != runs for w in weights.values()):
        raise ValueError(f"mode 'batched' has {runs} runs here: give weights with a first dimension of {runs}")
    _check_one(problem, {name: w[0] for name, w in weights.items()}, tasks[0].inner[0])
    return batched_loop(problem, usable_model(model, runs), optimiser, weights, stack(tasks), counts), meta


def _check_one(problem, weights: Weights, batch: Batch) -> None:
    """One run's weights and batch: the graph of all runs under vmap is hard to look at."""
    if hasattr(problem, "check"):
        problem.check(weights, batch)
    elif not known(problem):
        with drawing(0, weights):
            _first_loss(problem, batch, fresh_leaves(weights))
