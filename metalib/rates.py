"""What is learned: three models of a learning rate, all positive by construction.

A rate model is two functions behind one signature:

    meta = model.start(rate, weights)       {name: scalar tensor}, the meta-parameters that give `rate` at the start
    rates = model(meta, loss, weights)      {weight name: scalar tensor}, the rate of each weight in one inner step

and `model.curve(history)` turns the rates of an inner loop's first and last step into the few numbers that a plot
shows.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from metalib.problems import Weights

Meta = dict[str, Tensor]
Curve = dict[str, float]


def _leaf(value: float, weights: Weights) -> Tensor:
    like = next(iter(weights.values()))
    return torch.tensor(value, dtype=like.dtype, device=like.device, requires_grad=True)


class Constant:
    """One rate for every weight and every step: rate = exp(log_rate)."""

    name = "constant"
    steady = True  # the same rates at every step of an inner loop

    def start(self, rate: float, weights: Weights) -> Meta:
        return {"log_rate": _leaf(math.log(rate), weights)}

    def __call__(self, meta: Meta, loss: Tensor, weights: Weights) -> Weights:
        rate = meta["log_rate"].exp()
        return {name: rate for name in weights}

    def curve(self, history: list[Curve]) -> Curve:
        return {"rate": next(iter(history[0].values()))}


class PerTensor:
    """A rate for each weight tensor: rate[name] = exp(log_rate[name])."""

    name = "per tensor"
    steady = True

    def start(self, rate: float, weights: Weights) -> Meta:
        return {f"log_rate.{name}": _leaf(math.log(rate), weights) for name in weights}

    def __call__(self, meta: Meta, loss: Tensor, weights: Weights) -> Weights:
        return {name: meta[f"log_rate.{name}"].exp() for name in weights}

    def curve(self, history: list[Curve]) -> Curve:
        return dict(history[0])


class FromLoss:
    """The first question's meta-model: rate = softplus(slope · loss + offset), a new rate at every inner step.

    The loss is not detached: from the second inner step on, part of the meta-gradient flows through it. The slope
    starts at 0, so that the first rate is the one that was asked for, whatever the loss.
    """

    name = "from loss"
    steady = False

    def start(self, rate: float, weights: Weights) -> Meta:
        inverse_softplus = rate + math.log(-math.expm1(-rate))
        return {"slope": _leaf(0.0, weights), "offset": _leaf(inverse_softplus, weights)}

    def __call__(self, meta: Meta, loss: Tensor, weights: Weights) -> Weights:
        rate = F.softplus(meta["slope"] * loss + meta["offset"])
        return {name: rate for name in weights}

    def curve(self, history: list[Curve]) -> Curve:
        first, last = (next(iter(rates.values())) for rates in (history[0], history[-1]))
        return {"rate": first} if len(history) == 1 else {"first step": first, "last step": last}


RATES = {model.name: model for model in (Constant(), PerTensor(), FromLoss())}


class Given:
    """The rates themselves as meta-parameters: one named "rate", or one for each weight under the weight's name.

    Not positive by construction, so nothing here trains it; it answers what the derivative for a rate is.
    """

    name = "given"
    steady = True

    def __call__(self, meta: Meta, loss: Tensor, weights: Weights) -> Weights:
        return {name: meta[name] if name in meta else meta["rate"] for name in weights}


class Learned(NamedTuple):
    """A rate model at given meta-parameters."""

    model: Constant | PerTensor | FromLoss | Given
    meta: Meta


def learned(rate, weights: Weights) -> Learned:
    """A number, a tensor, {weight name: number} or a Learned as a Learned, with fresh leaves like the weights.

    Raises ValueError for a rate that is no finite number, or a dict that leaves a weight without one.
    """
    like = next(iter(weights.values()))
    if isinstance(rate, Learned):
        _check_model(rate)
    model, meta = rate if isinstance(rate, Learned) else (Given(), rate if isinstance(rate, dict) else {"rate": rate})
    if isinstance(model, Given) and set(meta) != set(weights):
        few, all_ = (", ".join(map(repr, names)) or "nothing" for names in (meta, weights))
        if "rate" not in meta or "rate" in weights or set(meta) - {"rate"} - set(weights):
            raise ValueError(f"rates are given for {few}: give one for each of {all_}, or one number")
    return Learned(model, {name: _fresh(name, value, like) for name, value in meta.items()})


def _check_model(rate: Learned) -> None:
    if not callable(rate.model):
        raise ValueError(f"the rate model is {rate.model!r}: give a function of meta, loss and weights")
    if not isinstance(rate.meta, dict) or not rate.meta:
        raise ValueError(f"the rate model's meta is {rate.meta!r}: give {{name: number}}, which is what is learned")


def _fresh(name: str, value, like: Tensor) -> Tensor:
    """The value as a new leaf of the same kind as `like`, if it is finite."""
    if isinstance(value, float) and math.isfinite(value):  # as in every outer step; asking the tensor takes far longer
        leaf = torch.tensor(value, dtype=like.dtype, device=like.device, requires_grad=True)
        if math.isfinite(leaf.item()):
            return leaf
    try:
        leaf = torch.as_tensor(value, dtype=like.dtype, device=like.device).detach().clone()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{name} is {value!r}: give a number, or a tensor") from None
    if not leaf.isfinite().all():
        raise ValueError(f"{name} is {value!r}: give a finite number, and one that {like.dtype} can hold")
    return leaf.requires_grad_()
