"""From settings to a number that can be differentiated: K inner steps, then the outer loss.

The outer loss is a function of the meta-parameters only; `meta_step` gives it in that form, ready for the referee.

>>> import torch
>>> from metalib.settings import Settings
>>> from metalib.unroll import begin, draw, unroll
>>> settings = Settings(version="data_write", inner_steps=2)
>>> generator, weights, meta = begin(settings)
>>> task = draw(settings, generator)
>>> run = unroll(settings, meta, weights, task)
>>> torch.autograd.grad(run.outer_loss, list(meta.values()), allow_unused=True)
(None,)
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.problems import PROBLEMS, Task, Weights
from metalib.rates import RATES, Curve, Meta
from metalib.settings import DTYPES, Settings
from metalib.tasks import place
from metalib.versions import VERSIONS


class Unrolled(NamedTuple):
    """One inner loop: its last weights, the outer loss there (with its graph), and what each step saw (detached)."""

    weights: Weights
    outer_loss: Tensor
    inner_losses: list[Tensor]
    rates: list[Weights]


def begin(settings: Settings) -> tuple[torch.Generator, Weights, Meta]:
    """The run's source of random numbers, its initial weights and its meta-parameters (leaves that require grad)."""
    settings.check_device()
    generator = torch.Generator().manual_seed(settings.seed)
    weights = PROBLEMS[settings.problem].initial_weights(generator)
    weights = place(weights, settings.device, DTYPES[settings.dtype])
    return generator, weights, RATES[settings.rate].start(settings.start_rate, weights)


def draw(settings: Settings, generator: torch.Generator) -> Task:
    """One task, on the run's device."""
    task = PROBLEMS[settings.problem].sample(settings.inner_steps, generator)
    return place(task, settings.device, DTYPES[settings.dtype])


def fresh_leaves(weights: Weights) -> Weights:
    """The same values in new tensors without a history: what cuts one outer step from the next."""
    return {name: w.detach().clone().requires_grad_() for name, w in weights.items()}


@contextmanager
def one_thread():
    """Compute on one CPU thread, and give the others back afterwards.

    The workbook's tensors are too small to share out. On a busy machine, waiting for a second thread was measured to
    make an outer step of the classifier twenty times slower.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def unroll(settings: Settings, meta: Meta, weights: Weights, task: Task) -> Unrolled:
    """Run the inner loop of `settings.version` on `task.inner`, then take the outer loss on `task.outer`.

    With `settings.truncation` = T the steps before the last T are run and then cut off: their values count, their
    gradients do not. `weights` are left as they are.
    """
    problem, rate, version = PROBLEMS[settings.problem], RATES[settings.rate], VERSIONS[settings.version]
    losses, rates = [], []

    def rates_of(loss):
        now = rate(meta, loss, weights)
        losses.append(loss.detach())
        rates.append({name: r.detach() for name, r in now.items()})
        return now

    inner = [partial(problem.loss, batch=batch) for batch in task.inner]
    cut = len(inner) - (settings.truncation or len(inner))
    last = fresh_leaves(weights)
    for loss_of in inner[:cut]:  # one step at a time, so that no graph outlives its step
        last = fresh_leaves(version(last, [loss_of], rates_of))
    last = version(last, inner[cut:], rates_of)
    return Unrolled(last, problem.loss(last, task.outer), losses, rates)


def meta_step(settings: Settings) -> tuple[Callable[[Meta], Tensor], Meta]:
    """(step, meta): a run's first outer loss as a function of its meta-parameters, and the values these start from.

    In float64, as the referee wants it. Every call of `step` sees the same weights and the same task.

    >>> from metalib.referee import referee
    >>> from metalib.settings import Settings
    >>> from metalib.unroll import meta_step
    >>> referee(*meta_step(Settings(version="detach"))).verdict
    'cut'
    """
    if settings.device == "mps":
        raise ValueError("the referee needs float64, which device 'mps' lacks: choose device 'cpu'")
    settings = replace(settings, dtype="float64")
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    return lambda meta: unroll(settings, meta, weights, task).outer_loss, meta


def curve(settings: Settings, run) -> Curve:
    """The few rates of one inner loop that a plot shows, as numbers: those of its first and of its last step."""
    history = [{name: r.item() for name, r in rates.items()} for rates in run.rates[:1] + run.rates[1:][-1:]]
    return RATES[settings.rate].curve(history)
