"""Many outer loops at once, in one tensor program: `train_together([Settings(seed=0), Settings(seed=1), …])`."""

import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from metalib.batched import batched, batched_loop, stack
from metalib.modes import Found
from metalib.optimisers import SGD, Adam
from metalib.problems import PROBLEMS, Task, Weights
from metalib.rates import RATES, Learned, Meta, learned
from metalib.settings import DTYPES, Settings
from metalib.tasks import place
from metalib.train import Record, Run, explosion, is_finite
from metalib.unroll import begin, one_thread

FREE = ("inner_steps", "outer_steps", "meta_rate", "start_rate", "seed")  # what runs may differ in


def why_not_together(runs: Sequence[Settings]) -> str:
    """The reason, in a sentence, why these runs cannot be one tensor program; "" where they can."""
    for settings in runs:
        for name, value in vars(settings).items():
            if name not in FREE and value != getattr(runs[0], name):
                return f"{name} differs ({getattr(runs[0], name)!r} and {value!r}): run these one by one"
        if settings.version != "functional" or settings.truncation:
            return "only the functional version, not truncated, runs many loops at once: run these one by one"
    return "" if runs else "no settings are given"


def train_together(settings: Sequence[Settings]) -> Iterator[list[Run]]:
    """What `train` does, for all these settings at once: yields the growing runs after each outer step.

    The runs may differ in seed, start rate, meta rate and numbers of steps; a ValueError names what else differs. Their
    records are those of `train`, but for rounding and for `seconds`, which is each run's share of the time. A run that
    diverges ends with the sentence why; the others go on.

    >>> from metalib.settings import Settings
    >>> from metalib.together import train_together
    >>> for runs in train_together([Settings(seed=seed, outer_steps=2) for seed in range(4)]):
    ...     print([len(run.records) for run in runs])
    [1, 1, 1, 1]
    [2, 2, 2, 2]
    """
    if reason := why_not_together(settings):
        raise ValueError(reason)
    runs, counts = [Run(each) for each in settings], [each.inner_steps for each in settings]
    problem = PROBLEMS[settings[0].problem]
    generators, starts, metas = zip(*map(begin, settings), strict=True)
    weights, meta = _stacked(starts), {name: p.detach().cpu().double() for name, p in _stacked(metas).items()}
    meta_rates = torch.tensor([each.meta_rate for each in settings], dtype=torch.float64)
    rule, memory = Adam(), Adam().start(meta)
    for step in range(max(each.outer_steps for each in settings)):
        began = time.perf_counter()
        with one_thread():
            tasks = [problem.sample(*each) for each in zip(counts, generators, strict=True)]
            found = _outer_step(settings[0], meta, counts, weights, tasks)
        _record(step, runs, found, (time.perf_counter() - began) / len(runs))
        for i, run in enumerate(runs):
            if run.records and not run.error and not is_finite(run.records[-1]):
                own, rates = ({name: t[i] for name, t in tree.items()} for tree in (weights, found.rates[0]))
                run.error = explosion(run.records[-1], run.settings, own, rates, tasks[i])
        yield runs
        if all(run.error for run in runs):
            return
        directions, memory = rule.direction(step, found.gradient, memory, meta)
        going = torch.tensor([not run.error for run in runs])
        meta = {name: torch.where(going, p - meta_rates * directions[name], p) for name, p in meta.items()}
        if settings[0].carry:
            weights = found.weights


def complete_together(settings: Sequence[Settings]) -> list[Run]:
    """All the runs at once, finished: what `[complete(each) for each in settings]` gives, but for rounding.

    >>> from metalib.settings import Settings
    >>> from metalib.together import complete_together
    >>> [len(run.records) for run in complete_together([Settings(outer_steps=3), Settings(outer_steps=5)])]
    [3, 5]
    """
    runs: list[Run] = []
    for grown in train_together(settings):
        runs = grown
    return runs


def _stacked(trees: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([tree[name] for tree in trees]) for name in trees[0]}


def _outer_step(settings: Settings, meta: Meta, counts: list[int], weights: Weights, tasks: list[Task]) -> Found:
    model, meta = learned(Learned(RATES[settings.rate], meta), weights)
    task = place(stack(tasks), settings.device, DTYPES[settings.dtype])  # once for all runs
    found = batched(batched_loop(PROBLEMS[settings.problem], model, SGD(), weights, task, counts), meta)
    return found._replace(gradient={name: g.cpu().double() for name, g in found.gradient.items()})


def _record(step: int, runs: list[Run], found: Found, seconds: float) -> None:
    """Add a record to each run that is not over."""
    outer, gradients = found.outer_loss.tolist(), {name: g.tolist() for name, g in found.gradient.items()}
    losses = [loss.tolist() for loss in found.inner_losses]
    shown = {0, *(run.settings.inner_steps - 1 for run in runs)}
    rates = {k: {name: r.tolist() for name, r in found.rates[k].items()} for k in shown}
    for i, run in enumerate(runs):
        steps = run.settings.inner_steps
        if run.error or step >= run.settings.outer_steps:
            continue
        ends = [{name: r[i] for name, r in rates[k].items()} for k in sorted({0, steps - 1})]
        record = Record(
            step=step,
            rates=RATES[run.settings.rate].curve(ends),
            inner_losses=tuple(loss[i] for loss in losses[:steps]),
            meta_loss=outer[i],
            meta_gradient={name: g[i] for name, g in gradients.items()},
            seconds=seconds,
        )
        run.records.append(record)
