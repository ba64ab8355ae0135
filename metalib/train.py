"""The outer loop: one record an outer step, so that progress, live plots and stopping are the caller's own `for` loop.

    for record in train(Settings(inner_steps=5)):
        print(record.step, record.rates, record.meta_loss)

A `Run` keeps the records together with the settings that made them.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from metalib.edge import edge
from metalib.metagrad import MetaGradient, meta_gradient
from metalib.optimisers import Adam
from metalib.problems import PROBLEMS, Task, Weights
from metalib.rates import RATES, Curve, Learned, learned
from metalib.resume import State, check_same, start
from metalib.settings import Settings
from metalib.unroll import curve, draw, one_thread, unroll


@dataclass(frozen=True)
class Record:
    """One outer step. Rates are those that this step used; a meta-gradient of None means that none arrived.

    `inner_losses` has one entry for each inner step, taken before that step; `seconds` is this outer step's time.

    >>> from metalib.settings import Settings
    >>> from metalib.train import train
    >>> record = next(train(Settings(version="data_write", inner_steps=5)))
    >>> record.step, len(record.inner_losses), record.meta_gradient
    (0, 5, {'log_rate': None})
    """

    step: int
    rates: Curve
    inner_losses: tuple[float, ...]
    meta_loss: float
    meta_gradient: dict[str, float | None]
    seconds: float


@dataclass
class Run:
    """Settings, the records so far, and the sentence that says why it ended early ("" if it did not)."""

    settings: Settings
    records: list[Record] = field(default_factory=list)
    error: str = ""


class Diverged(ArithmeticError):
    """The outer loss or the meta-gradient is no longer finite; the record of that step was yielded before.

    >>> from metalib.settings import Settings
    >>> from metalib.train import Diverged, train
    >>> try:
    ...     list(train(Settings(start_rate=30.0, inner_steps=200)))
    ... except Diverged as error:
    ...     print(str(error).partition(":")[0])
    outer step 0 diverged at rate 30
    """


def train(settings: Settings, state: State | None = None) -> Iterator[Record]:
    """Learn the rate: unroll, differentiate the outer loss for the meta-parameters, one step of Adam; then yield.

    Every outer step starts from weights without a history, so neither graph nor memory grows. Whatever the inner loop's
    version raises comes out of here as it is; Diverged follows the record in which a number stopped being finite.
    Goes on from `state` when there is one, and keeps it up to date: at each yield it stands after that record's step.

    >>> from metalib.settings import Settings
    >>> from metalib.train import train
    >>> [round(record.rates["rate"], 3) for record in train(Settings(outer_steps=3))]
    [0.1, 0.105, 0.11]
    """
    state = start(settings) if state is None else state
    check_same(state, settings)
    rule = Adam()
    while state.step < settings.outer_steps:
        began, generator = time.perf_counter(), state.generator.clone_state()
        with one_thread():
            task = draw(settings, generator)
            run = outer_step(settings, state.numbers, state.weights, task)
        record = Record(
            step=state.step,
            rates=curve(settings, run),
            inner_losses=tuple(loss.item() for loss in run.inner_losses),
            meta_loss=run.outer_loss.item(),
            meta_gradient={name: None if g is None else g.item() for name, g in run.gradient.items()},
            seconds=time.perf_counter() - began,
        )
        gradients = {name: g or 0.0 for name, g in record.meta_gradient.items()}
        if finite := is_finite(record):
            directions, memory = rule.direction(state.step, gradients, state.memory, state.numbers)
            numbers = {name: p - settings.meta_rate * directions[name] for name, p in state.numbers.items()}
            weights = run.weights if settings.carry else state.weights
            state.set(step=state.step + 1, numbers=numbers, memory=memory, weights=weights, generator=generator)
        yield record
        if not finite:
            raise Diverged(explosion(record, settings, state.weights, run.rates[0], task))


def outer_step(settings: Settings, numbers: dict[str, float], weights: Weights, task: Task) -> MetaGradient:
    """The meta-gradient of one outer step, None where none arrives.

    The functional version is computed by the engine, in the mode that suits its size. All others run as they are
    written, through `unroll`: what is wrong with them is what they are here for.
    """
    if settings.version == "functional":
        problem, rate = PROBLEMS[settings.problem], Learned(RATES[settings.rate], numbers)
        mode = "truncated" if settings.truncation else "auto"
        steps, span = settings.inner_steps, settings.truncation
        return meta_gradient(problem, rate, steps, mode, span=span, weights=weights, task=task)
    meta = learned(Learned(RATES[settings.rate], numbers), weights).meta
    run = unroll(settings, meta, weights, task)
    grads = torch.autograd.grad(run.outer_loss, list(meta.values()), allow_unused=True)
    seen = run.outer_loss, run.weights, run.inner_losses, run.rates
    return MetaGradient(dict(zip(meta, grads, strict=True)), *seen, "reverse", "as it is written")


def is_finite(record: Record) -> bool:
    gradients = [g for g in record.meta_gradient.values() if g is not None]
    return all(map(math.isfinite, [record.meta_loss, *gradients]))


def explosion(record: Record, settings: Settings, weights: Weights, rates: Weights, task: Task) -> str:
    """What to say of a record that is not finite, and of the inner loop that began with these weights and rates."""
    where = ", ".join(f"{rate:.3g}" for rate in record.rates.values())
    what = f"outer step {record.step} diverged at rate {where}: the outer loss is {record.meta_loss:.3g}"
    why = edge(settings, weights, rates, task)
    return f"{what}. {why}. Choose a smaller start rate, a smaller meta rate or fewer inner steps"


def complete(settings: Settings) -> Run:
    """The whole run at once. What stops it early is kept as a sentence in `error`.

    >>> from metalib.settings import Settings
    >>> from metalib.train import complete
    >>> complete(Settings(version="in_place")).error
    'RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.'
    """
    run = Run(settings)
    try:
        run.records.extend(train(settings))
    except (RuntimeError, ValueError, Diverged) as error:
        run.error = explain(error)
    return run


def explain(error: Exception) -> str:
    """One line: the class of an exception and its message, without PyTorch's hint about anomaly mode."""
    message = " ".join(str(error).partition("Hint:")[0].split())
    return message if isinstance(error, Diverged) else f"{type(error).__name__}: {message}"
