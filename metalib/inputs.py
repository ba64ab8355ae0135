"""What `meta_gradient` is given, in a form that every mode can use; or a ValueError with what to give instead."""

import weakref
from collections.abc import Sequence, Sized
from contextlib import suppress
from functools import partial

import torch
from torch import Tensor

from metalib.own import Bare
from metalib.problems import Batch, Task, Weights
from metalib.rates import RATES, Given, Meta
from metalib.twice import check_twice

_looked_at: dict[int, weakref.ref] = {}  # problems by their id, as not all of them can be hashed
OURS = (Given, *map(type, RATES.values()))


def usable_weights(weights) -> Weights:
    """{name: real floating tensor}; a tensor that inference_mode made is copied, as no graph can begin there."""
    if not isinstance(weights, dict) or not weights:
        raise ValueError(f"weights are {weights!r}: give {{name: tensor}}, with at least one weight")
    for name, w in weights.items():
        if not isinstance(w, Tensor) or not w.is_floating_point():
            what = f"of {w.dtype}" if isinstance(w, Tensor) else repr(w)
            raise ValueError(f"weights[{name!r}] is {what}: give a real floating-point tensor")
        if w.is_meta or w.layout != torch.strided:
            what = "on the meta device, without numbers" if w.is_meta else f"of the layout {w.layout}"
            raise ValueError(f"weights[{name!r}] is {what}: give a plain tensor on a device that computes")
    return {name: w.clone() if w.is_inference() else w for name, w in weights.items()}


def usable_task(task, inner_steps: int) -> Task:
    """A Task with one batch for each inner step."""
    if not isinstance(task, Task):
        raise ValueError(f"the task is {task!r}: give Task(inner batches, outer batch) from metalib.problems")
    inner = task.inner
    if not isinstance(inner, Sized) or isinstance(inner, Batch | dict | str):
        raise ValueError(f"the task's inner batches are {inner!r}: give a list, with one batch a step")
    if len(inner) != inner_steps:
        raise ValueError(f"the task has {len(inner)} inner batches for {inner_steps} inner steps: give one a step")
    return task


def check_shapes(model, meta: Meta, weights: Weights) -> None:
    """A rate that is given is one number, or one for each number of its weight tensor."""
    for name, p in meta.items() if isinstance(model, Given) else ():
        if p.dim() and (name not in weights or p.shape != weights[name].shape):
            shape = tuple(p.shape)
            raise ValueError(f"{name} has the shape {shape}: give one number, or choose mode 'batched' for many runs")


def usable_model(model, runs: int = 0):
    """The rate model; one of somebody's own with a look at what it returns. `runs` counts those of mode batched."""
    return model if isinstance(model, OURS) else _Watched(model, runs)


class _Watched:
    """A rate model whose rates are checked at each call."""

    def __init__(self, model, runs: int):
        self.model, self.runs, self.steady = model, runs, getattr(model, "steady", False)

    def __call__(self, meta: Meta, loss: Tensor, weights: Weights) -> Weights:
        rates = self.model(meta, loss, weights)
        if not isinstance(rates, dict) or not weights.keys() <= rates.keys():
            names = ", ".join(map(repr, weights))
            raise ValueError(f"the rate model returns {rates!r}: return {{name: rate}} for each of {names}")
        for name, w in weights.items():
            self._check(name, rates[name], w)
        return rates

    def _check(self, name: str, rate, w: Tensor) -> None:
        if not isinstance(rate, Tensor) or not rate.is_floating_point() or rate.is_meta:
            what = f"a tensor of {rate.dtype} on {rate.device}" if isinstance(rate, Tensor) else repr(rate)
            raise ValueError(f"the rate model's rate of {name!r} is {what}: return a real floating-point tensor")
        fits = rate.shape == w.shape[:1] if self.runs else rate.shape == w.shape
        if rate.dim() and not fits:
            each = f"one number for each of the {self.runs} runs" if self.runs else f"one number, or {tuple(w.shape)}"
            raise ValueError(f"the rate model's rate of {name!r} has the shape {tuple(rate.shape)}: return {each}")


def count_runs(meta: Meta) -> int:
    """How many runs the rates of mode batched are given for."""
    shapes = {tuple(p.shape) for p in meta.values()}
    if len(shapes) > 1 or len(shape := shapes.pop()) != 1 or not shape[0]:
        given = ", ".join(f"{name} has the shape {tuple(p.shape)}" for name, p in meta.items())
        raise ValueError(f"mode 'batched' computes R runs at once, and {given}: give R numbers for each rate")
    return shape[0]


def for_each(what: str, given, runs: int) -> list:
    """One for each run: the given ones, or the given one again and again."""
    each = [*given] if isinstance(given, Sequence) and not isinstance(given, Task) else [given] * runs
    if len(each) != runs:
        raise ValueError(f"{what}: {len(each)} are given for {runs} runs: give one, or one for each run")
    return each


def look_once(problem, loss: Tensor, weights: Weights, batch: Batch) -> None:
    """`check_twice` for a problem that has no check of its own, when it is first met. A function made anew is new."""
    thing = _itself(problem)
    if known(problem) or not check_twice(problem.loss, loss, weights, batch):
        return
    with suppress(TypeError):  # an object with __slots__ is looked at each time
        _looked_at[id(thing)] = weakref.ref(thing, partial(_forget, id(thing)))


def known(problem) -> bool:
    """Whether `look_once` has seen it."""
    seen = _looked_at.get(id(_itself(problem)))
    return seen is not None and seen() is _itself(problem)


def _itself(problem):
    """What stays the same from call to call: the wrapping of a bare function does not."""
    return problem.loss if isinstance(problem, Bare) else problem


def _forget(key: int, _) -> None:
    _looked_at.pop(key, None)
