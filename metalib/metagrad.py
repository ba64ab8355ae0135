"""One call for the meta-gradient, whatever the problem, the rate, the optimiser and the way to compute it.

    found = meta_gradient(PROBLEMS["classifier"], 0.1, inner_steps=5)
    found.gradient         {"rate": d outer loss / d rate}
    found.mode, found.why  how it was computed, and why so

All modes are exact but `truncated` and `first_order`; what each costs is told in `modes.py`.
"""

from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.batched import batched, batched_loop, stack
from metalib.choice import choose
from metalib.forward import forward
from metalib.modes import Loop, checkpointed, first_order, reverse, truncated
from metalib.optimisers import SGD, Adam, Clipped, check_rule
from metalib.own import as_problem
from metalib.problems import Batch, Task, Weights
from metalib.randomness import Draws
from metalib.rates import Given, Learned, Meta, learned
from metalib.settings import one_of, whole
from metalib.trial import check_loss

MODES = {mode.__name__: mode for mode in (reverse, forward, checkpointed, truncated, first_order, batched)}
MOST_STEPS = 1_000_000
Generator = torch.Generator | None


class MetaGradient(NamedTuple):
    """A meta-gradient and what the inner loop saw, all without a graph; which mode computed it, and why that one."""

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

    Raises ValueError, with a sentence, for a choice that cannot be. A run that explodes gives inf or nan as they come.
    """
    one_of("mode", mode, ["auto", *MODES])
    check_rule(optimiser)
    problem = as_problem(problem, weights, task)
    if span is not None:
        whole("span", span, 1, MOST_STEPS)
    with torch.inference_mode(False), torch.enable_grad():
        draws = Draws(generator if mode != "batched" else None)
        make = _batched_loop if mode == "batched" else partial(_loop, draws)
        loop, meta = make(problem, rate, inner_steps, optimiser, weights, task, generator)
        with draws.watched(), _explained(mode):
            mode, why = choose(loop, meta) if mode == "auto" else (mode, "as asked")
            return MetaGradient(*MODES[mode](loop, meta, span), mode, why)


@contextmanager
def _explained(mode: str):
    """A ValueError with the next step, for the two refusals of PyTorch's own that are to be expected here."""
    try:
        yield
    except RuntimeError as error:
        if "derivative for" in str(error):
            kernel = "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)"
            hint = f"; choose the kernel that can: `with {kernel}:`" if "scaled_dot_product" in str(error) else ""
            raise ValueError(f"the inner loss cannot be differentiated twice ({error}){hint}") from error
        if mode == "batched" and any(
            word in str(error).lower() for word in ("vmap", "batching rule", "batched tensor")
        ):
            sentence = f"this loss cannot run under vmap, so call meta_gradient once for each run: {error}"
            raise ValueError(sentence) from error
        raise


def _loop(draws: Draws, problem, rate, inner_steps, optimiser, weights, task, source) -> tuple[Loop, Meta]:
    whole("inner_steps", inner_steps, 1, MOST_STEPS)
    source = source or torch.Generator().manual_seed(0)
    weights = weights or problem.initial_weights(source)
    task = task or problem.sample(inner_steps, source)
    _check_batches(task, inner_steps)
    _check_weights(problem, weights, task)
    model, meta = learned(rate, weights)
    _check_shapes(model, meta, weights)
    inner = [draws.seeded(partial(_loss, problem, batch)) for batch in task.inner]
    return Loop(weights, inner, draws.seeded(partial(_loss, problem, task.outer)), model, optimiser), meta


def _check_weights(problem, weights: Weights, task: Task) -> None:
    """What the problem itself has to say, if it checks what it is given."""
    if hasattr(problem, "check"):
        problem.check(weights, task.inner[0])


def _check_batches(task: Task, inner_steps: int) -> None:
    if len(task.inner) != inner_steps:
        raise ValueError(f"the task has {len(task.inner)} inner batches for {inner_steps} inner steps: give one a step")


def _check_shapes(model, meta: Meta, weights: Weights) -> None:
    """A rate is one number, or one for each number of its weight tensor."""
    for name, p in meta.items() if isinstance(model, Given) else ():
        if p.dim() and (name not in weights or p.shape != weights[name].shape):
            shape = tuple(p.shape)
            raise ValueError(f"{name} has the shape {shape}: give one number, or choose mode 'batched' for many runs")


def _loss(problem, batch: Batch, weights: Weights) -> Tensor:
    return check_loss(problem.loss(dict(weights), batch))


def _batched_loop(problem, rate, inner_steps, optimiser, weights, tasks, source) -> tuple[Loop, Meta]:
    """R runs: weights and data from one generator are the same for all, those from R generators are each run's own."""
    source = source or torch.Generator().manual_seed(0)
    sources = [*source] if isinstance(source, Sequence) else [source]
    starts = [weights] if weights else [problem.initial_weights(each) for each in sources]
    model, meta = learned(rate, starts[0])
    runs = _runs(meta)
    counts = [whole("inner_steps", steps, 1, MOST_STEPS) for steps in _each("inner_steps", inner_steps, runs)]
    if tasks is None and len(sources) == 1:
        longest = problem.sample(max(counts), source)
        tasks = [longest._replace(inner=longest.inner[:steps]) for steps in counts]
    elif tasks is None:
        tasks = [problem.sample(*each) for each in zip(counts, _each("generator", sources, runs), strict=True)]
    starts = _each("generator", starts if len(starts) > 1 else starts[0], runs)
    weights = weights or {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
    tasks = _each("task", tasks, runs)
    for task, steps in zip(tasks, counts, strict=True):
        _check_batches(task, steps)
    if any(len(w) != runs for w in weights.values()):
        raise ValueError(f"mode 'batched' has {runs} runs here: give weights with a first dimension of {runs}")
    _check_weights(problem, {name: w[0] for name, w in weights.items()}, tasks[0])
    return batched_loop(problem, model, optimiser, weights, stack(tasks), counts), meta


def _runs(meta: Meta) -> int:
    """How many runs the rates are given for."""
    shapes = {tuple(p.shape) for p in meta.values()}
    if len(shapes) > 1 or len(shape := shapes.pop()) != 1 or not shape[0]:
        given = ", ".join(f"{name} has the shape {tuple(p.shape)}" for name, p in meta.items())
        raise ValueError(f"mode 'batched' computes R runs at once, and {given}: give R numbers for each rate")
    return shape[0]


def _each(what: str, given, runs: int) -> list:
    """One for each run: the given ones, or the given one again and again."""
    each = [*given] if isinstance(given, Sequence) and not isinstance(given, Task) else [given] * runs
    if len(each) != runs:
        raise ValueError(f"{what}: {len(each)} are given for {runs} runs: give one, or one for each run")
    return each
