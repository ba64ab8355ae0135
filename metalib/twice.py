"""Losses that autograd differentiates a second time wrongly and without a word: found before they are used.

A meta-gradient needs the derivative of an inner gradient. PyTorch's own operations have it right, but for
torch._weight_norm; a `torch.autograd.Function` is as right as its author made it, and held against differences here.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from metalib.differences import EPSILON
from metalib.problems import Batch, Weights
from metalib.randomness import drawing
from metalib.report import reachable
from metalib.unroll import fresh_leaves

WIDTHS = (1e-6, 3e-8)  # steps beside weights of size 1: few kinks lie between, and rounding leaves digits enough
COMPILED = (
    "the loss runs through torch.compile, which cannot be differentiated twice: give the plain module or function, or "
    "compile with backend='eager'"
)
LossOf = Callable[[Weights, Batch], Tensor]


def check_twice(
    loss_of: LossOf, loss: Tensor, weights: Weights, batch: Batch, double: Callable[[], LossOf] | None = None
) -> bool:
    """ValueError for a loss whose second derivative would be wrong. `loss` is loss_of(weights, batch), with its graph.

    Without a Function in the graph it costs a walk through it, else some six more losses with their gradients. These
    are in float64; `double` gives the loss for it where loss_of itself cannot compute so. False where these weights
    show nothing, being so large that all derivatives vanish, or not finite: then others are to be looked at as well.
    """
    nodes = reachable([loss.grad_fn])
    if _weight_norm(nodes):
        raise ValueError(
            "the loss calls torch._weight_norm, whose second derivative is wrong in PyTorch: compute g * v / v.norm() "
            "in its place"
        )
    own = _functions(nodes)
    if "CompiledFunction" in own:
        raise ValueError(COMPILED)
    wrong = _wrong(loss_of, weights, batch, double or (lambda: loss_of)) if own else ""
    if wrong:
        raise ValueError(
            f"the loss uses {own}, a torch.autograd.Function that {wrong}: make its backward the derivative of its "
            "forward, of tensors that keep their history (ctx.save_for_backward; no detach, .data or "
            "once_differentiable)"
        )
    return wrong is not None and all(bool(w.isfinite().all()) for w in weights.values())


def check_rates(rates: Weights) -> None:
    """ValueError for the rates of a model, with their graph, that forward mode would differentiate twice wrongly."""
    nodes = reachable([rate.grad_fn for rate in rates.values()])
    if own := _functions(nodes) or "torch._weight_norm" * _weight_norm(nodes):
        raise ValueError(
            f"the rate model uses {own}, which mode 'forward' would have to differentiate twice: choose mode "
            "'reverse' or 'checkpointed'"
        )


def _functions(nodes) -> str:
    """The names of the Functions among the nodes of a graph, with commas between."""
    found = {node.name().removesuffix("Backward") for node in nodes if isinstance(node, BackwardCFunction)}
    return ", ".join(sorted(found))


def _weight_norm(nodes) -> bool:
    return any(node.name() == "WeightNormInterfaceBackward0" for node in nodes)


class _Point(NamedTuple):
    """The weights somewhere, the loss there, and its slope along one direction; both with a graph."""

    weights: Weights
    loss: Tensor
    slope: Tensor


def _wrong(loss_of: LossOf, weights: Weights, batch: Batch, double: Callable[[], LossOf]) -> str | None:
    """What is wrong with the loss's first or second derivative along two random directions; "" where nothing is.

    None where these weights do not show it.
    """
    draw = torch.Generator().manual_seed(0)
    u, v = ({name: _direction(w, draw) for name, w in weights.items()} for _ in range(2))
    try:
        here = _point(loss_of, weights, batch, u)
        _along(here.slope, here.weights, v, retain_graph=True)
    except Exception as error:  # whatever somebody's backward raises
        return f"raises {type(error).__name__} when its gradient is differentiated ({error})"
    if any(node.name().endswith("Error") for node in reachable([here.slope.grad_fn])):
        return "is once_differentiable, so that the derivative of its gradient is lost"
    if all(w.dtype == torch.float64 for w in weights.values()):
        return _measured(loss_of, weights, batch, u, v)
    if any(w.is_complex() for w in weights.values()):
        return ""
    try:
        return _measured(double(), *(_doubled(each) for each in (weights, batch, u, v)))
    except Exception:  # something in it has a dtype of its own, or the device no float64
        return ""


def _doubled(tree):
    """Its floating tensors in float64, where they are; what is no tensor stays."""
    if isinstance(tree, dict):
        return {name: _doubled(part) for name, part in tree.items()}
    if isinstance(tree, tuple):
        parts = map(_doubled, tree)
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree.double() if isinstance(tree, Tensor) and tree.is_floating_point() else tree


def _point(loss_of: LossOf, weights: Weights, batch: Batch, u: Weights) -> _Point:
    leaves = fresh_leaves(weights)
    with drawing(0, weights), torch.enable_grad():
        loss = loss_of(dict(leaves), batch)
        # times a variable: a once_differentiable backward leaves its trace only where it is given one
        variable = torch.ones_like(loss, requires_grad=True)
        return _Point(leaves, loss, _along(loss * variable, leaves, u, create_graph=True))


def _measured(loss_of: LossOf, weights: Weights, batch: Batch, u: Weights, v: Weights) -> str | None:
    """What differences along v have against the loss's derivatives, in float64; None where they see nothing move."""
    here = _point(loss_of, weights, batch, u)
    claims = [_along(number, here.weights, v, retain_graph=True).item() for number in (here.loss, here.slope)]
    values, objections = (here.loss.item(), here.slope.item()), []
    del here  # and with it a graph

    def at(shift: float) -> tuple[float, float]:
        moved = {name: w.detach() + shift * v[name] for name, w in weights.items()}
        point = _point(loss_of, moved, batch, u)
        return point.loss.item(), point.slope.item()

    for width in WIDTHS:
        near = zip(*(at(shift) for shift in (width, -width, width / 2, -width / 2)), strict=True)
        each = zip(("", "second "), claims, values, near, strict=True)
        objections = [_objection(which, claim, value, ends, width) for which, claim, value, ends in each]
        if None not in objections:
            break
    return next(filter(None, objections), "" if claims[1] or None in objections else None)


def _objection(which: str, claim: float, value: float, near: tuple[float, ...], width: float) -> str | None:
    """What differences have against a slope that is claimed; None where they do not settle, as at a kink."""
    up, down, up2, down2 = near
    wide, slope = (up - down) / (2 * width), (up2 - down2) / width
    noise = 100 * EPSILON * abs(value) / width
    if not abs(wide - slope) <= 1e-4 * abs(slope) + noise:
        return None
    if abs(claim - slope) > 1e-3 * max(abs(claim), abs(slope)) + 2 * noise:
        return f"has a {which}derivative of {claim:.4g} where differences see {slope:.4g}"
    return ""


def _direction(w: Tensor, draw: torch.Generator) -> Tensor:
    """Random numbers of the size of the weight's own."""
    size = w.detach().square().mean().sqrt().item() or 1.0
    return size * torch.randn(w.shape, generator=draw, dtype=torch.float64).to(w)


def _along(number: Tensor, weights: Weights, direction: Weights, **graph: bool) -> Tensor:
    """The slope of a number along a direction, as autograd says."""
    if not number.requires_grad:
        return torch.zeros_like(number)
    grads = torch.autograd.grad(number, list(weights.values()), allow_unused=True, **graph)
    parts = [(g * direction[name]).sum() for name, g in zip(weights, grads, strict=True) if g is not None]
    return sum(parts, 0 * number)
