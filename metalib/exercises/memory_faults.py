"""For notebook 07: slopes with one fault each, so that an answer which has the same slope can be told its fault."""

import math
from functools import partial

import torch
from torch import Tensor

from metalib.exercises.by_hand import Place, gradient
from metalib.exercises.lookalikes import Loss, descend

MOMENTUM = 0.9


def misplaced(w: Tensor, place: Place) -> str:
    """Why these are not the weights after K steps; "" when they are."""

    def end(more: int = 0, sign: int = 1, momentum: float = MOMENTUM, share: float = 1.0) -> Tensor:
        w, m = place.start(), 0.0
        for _ in range(place.K + more):
            m = momentum * m + share * gradient(place.model.inner, w)
            w = (w - sign * place.rate * m).detach().requires_grad_()
        return w

    if torch.allclose(w, end(), rtol=1e-9, atol=1e-12):
        return ""
    faults = {why: end(**options) for why, options in MISPLACED.items()}
    return next((why for why, other in faults.items() if torch.allclose(w, other, rtol=1e-9, atol=1e-12)), "look at m")


MISPLACED = {
    "they have not moved": {"sign": 0},
    "they move as in plain descent": {"momentum": 0.0},
    "they walk up the loss": {"sign": -1},
    "there is one step less than was asked for": {"more": -1},
    "there is one step more than was asked for": {"more": 1},
    "m is an average of the gradients, where it should be a sum": {"share": 1 - MOMENTUM},
}


def slope_of(w: Tensor, v: Tensor, place: Place) -> float:
    w = w.clone().requires_grad_()
    return (gradient(place.model.outer, w) * v).sum().item()


def carried(place: Place, line) -> float:
    """The slope when v moves by `line`, of v, g, H v, m, dm / d rate and the rate, and all else as it should."""
    w = place.start()
    m, u, v = (torch.zeros_like(w) for _ in range(3))
    for _ in range(place.K):
        g = gradient(place.model.inner, w, create_graph=True)
        (product,) = torch.autograd.grad(g, w, v)
        g = g.detach()
        m, u = MOMENTUM * m + g, MOMENTUM * u + product
        v = line(v, g, product, m, u, place.rate)
        w = (w - place.rate * m).detach().requires_grad_()
    return slope_of(w.detach(), v, place)


CARRIED = {
    "v still moves as in plain descent, w no longer does": lambda v, g, product, m, u, rate: v - g - rate * product,
    "the memory m depends on the rate too, and its own derivative does not reach v": (
        lambda v, g, product, m, u, rate: v - m - rate * product
    ),
    "H v does not reach v, so this is the first-order derivative": lambda v, g, product, m, u, rate: v - m,
    "H v does not reach v, and what is left is that of plain descent": lambda v, g, product, m, u, rate: v - g,
    "the product rule has two parts, and the part without a derivative is that of plain descent": (
        lambda v, g, product, m, u, rate: v - g - rate * u
    ),
    "the two parts of the product rule have different signs": lambda v, g, product, m, u, rate: v - m + rate * u,
    "the rate is missing in front of the derivative of m": lambda v, g, product, m, u, rate: v - m - u,
}
CARRIED = {why: partial(carried, line=line) for why, line in CARRIED.items()}


def walked(place: Place, by=lambda rate: rate, gradient_at=0, hessian_at=0, begin=-1, early=False, steps=slice(None)):
    """The slope of a walk with these faults; without any, the right one."""
    path = place.path()
    a, total = gradient(place.model.outer, path[begin]), 0.0
    for k in list(reversed(range(place.K)))[steps]:
        at = path[k + hessian_at]
        (product,) = torch.autograd.grad(gradient(place.model.inner, at, create_graph=True), at, a)
        moved = a - by(place.rate) * product
        total -= ((moved if early else a) * gradient(place.model.inner, path[k + gradient_at])).sum().item()
        a = moved
    return total


WALKED = {
    "a never changes, so this is the first-order slope": partial(walked, by=lambda rate: 0.0),
    "a is moved back before it is used: a step wants the a of the weights that it ends with": partial(
        walked, early=True
    ),
    "the Hessian is taken at the weights where the step ends, not where it starts": partial(walked, hessian_at=1),
    "the gradient is taken at the weights where the step ends, not where it starts": partial(walked, gradient_at=1),
    "gradient and Hessian are taken where the step ends, not where it starts": (
        partial(walked, gradient_at=1, hessian_at=1)
    ),
    "the term with the Hessian has the wrong sign": partial(walked, by=lambda rate: -rate),
    "the rate is missing in front of the Hessian's term": partial(walked, by=lambda rate: 1.0),
    "the rate is a number of yours, not the one that was given": partial(walked, by=lambda rate: 0.1),
    "the walk goes from the first step to the last: the chain rule wants it the other way": (
        partial(walked, steps=slice(None, None, -1))
    ),
    "a begins with the outer loss's gradient at the start, not at the end": partial(walked, begin=0),
    "only the last step is counted": partial(walked, steps=slice(1)),
    "the first step is not counted": partial(walked, steps=slice(-1)),
}


def by_rate(rate: Tensor, loss: Tensor) -> Tensor | None:
    return torch.autograd.grad(loss, rate, allow_unused=True)[0]


def by_loop(place: Place, loop) -> float:
    rate = torch.tensor(place.rate, dtype=torch.float64, requires_grad=True)
    found = by_rate(rate, place.model.outer(loop(place.start(), rate, place.K, place.span, place.model.inner)))
    return math.nan if found is None else found.item()


def last_steps(w: Tensor, rate: Tensor, K: int, span: int, loss: Loss, create_graph: bool = True) -> Tensor:
    """The weights after K steps; only the last `span` have a history."""
    w = descend(w, rate.detach(), K - span, loss).detach().requires_grad_()
    return descend(w, rate, span, loss, create_graph)


CUT_SHORT = {
    "one step too many has a history": lambda w, rate, K, span, loss: last_steps(w, rate, K, min(K, span + 1), loss),
    "one step too few has a history": lambda w, rate, K, span, loss: last_steps(w, rate, K, max(0, span - 1), loss),
    "only one step has a history": lambda w, rate, K, span, loss: last_steps(w, rate, K, 1, loss),
    "all steps have a history": lambda w, rate, K, span, loss: descend(w, rate, K, loss),
    "the first steps are differentiated, where the last ones should be": (
        lambda w, rate, K, span, loss: descend(descend(w, rate, span, loss), rate.detach(), K - span, loss)
    ),
    "the inner gradients are not differentiated, so this is the first-order slope of the last steps": (
        lambda w, rate, K, span, loss: last_steps(w, rate, K, span, loss, create_graph=False)
    ),
}
CUT_SHORT = {why: partial(by_loop, loop=loop) for why, loop in CUT_SHORT.items()}
