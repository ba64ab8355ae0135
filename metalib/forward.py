"""The meta-gradient by forward mode: carry d weights / d meta beside the weights. Memory does not grow with K.

One inner step is w ← w - r d, with the rate r and the direction d (for plain descent the gradient g). Its derivative
for a meta-parameter, with v = d w / d meta, is

    v ← v - r ḋ - ṙ d        ḋ = H v for plain descent, H the Hessian of the inner loss

and at the end d outer loss / d meta = ∇outer · v. H v is the gradient of g · v (Pearlmutter, Fast exact multiplication
by the Hessian, Neural Computation 6, 1994). Nothing of a step is needed once it is done: its graph is freed, and the
weights are updated in place. That is right here, since no graph that is still to be used holds them.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from metalib.modes import Found, Loop, Point, Seen, begin, detached, found, gradient, leaves
from metalib.problems import Weights
from metalib.rates import Meta
from metalib.twice import check_rates
from metalib.unroll import fresh_leaves

MOST = 1_000  # tangents, each as large as the weights


class Tangent:
    """The derivative of everything that a loop carries for one number among the meta-parameters."""

    def __init__(self, name: str, seed: Tensor, point: Point):
        self.name, self.seed, self.rates = name, seed, {}
        self.weights = {n: torch.zeros_like(w) for n, w in point.weights.items()}
        self.state = tuple({n: torch.zeros_like(s) for n, s in slot.items()} for slot in point.state)


def forward(loop: Loop, meta: Meta, span: int | None = None) -> Found:
    """Exact, for few meta-parameters: one tangent, and one Hessian-vector product a step, for each number in them."""
    if (numbers := sum(p.numel() for p in meta.values())) > MOST:
        few = f"mode 'forward' carries the weights' derivative for each of {numbers:,} numbers, at most {MOST:,}"
        raise ValueError(f"{few}: choose 'reverse' or 'checkpointed'")
    point, seen = begin(loop._replace(weights=fresh_leaves(loop.weights)))  # its own, to write into
    tangents = [Tangent(name, seed, point) for name, p in meta.items() for seed in _one_hots(p)]
    meta = detached(meta)
    steady, losses = getattr(loop.model, "steady", False), torch.empty(0)
    for step, loss_of in enumerate(loop.inner):
        loss = loss_of(point.weights)
        losses = loss.detach().new_empty(len(loop.inner)) if step == 0 else losses
        gradients = gradient(loss, point.weights, create_graph=step > 0)
        products = [_product(gradients, point.weights, each, keep=each is not tangents[-1]) for each in tangents]
        here, gradients = Point(step, detached(point.weights), point.state), detached(gradients)
        if step == 0:
            check_rates(loop.model(leaves(meta), loss.detach().requires_grad_(), leaves(here.weights)))
        if step == 0 or not steady:
            rates = loop.model(meta, loss.detach(), here.weights)
            for tangent in tangents:
                tangent.rates = _moved_rates(loop, meta, here, tangent, loss.detach(), gradients)
        directions, state = loop.rule.direction(step, gradients, here.state, here.weights)
        for tangent, product in zip(tangents, products, strict=True):
            _carry(tangent, rates, _slopes(loop, here, tangent, gradients, product), directions)
        for name, w in here.weights.items():
            w.addcmul_(rates[name], directions[name], value=-1)
        weights = leaves(here.weights)  # the same memory; new tensors, or autocast would take them for the old ones
        losses[step] = loss.detach()  # into one tensor: a thousand small ones would scatter over the heap
        seen.rates.append(rates)
        point = Point(step + 1, weights, state)
        del loss, gradients, products, directions  # or they would lie beside those of the next step
    outer = loop.outer(point.weights)
    gradients = gradient(outer, point.weights)
    by_meta = {name: torch.zeros_like(p) for name, p in meta.items()}
    for tangent in tangents:
        by_meta[tangent.name] += tangent.seed * _dot(gradients, tangent.weights)
    return found(by_meta, outer, point, Seen(list(losses.unbind()), seen.rates))


def _carry(tangent: Tangent, rates: Weights, slopes: Weights, directions: Weights) -> None:
    """v ← v - r ḋ - ṙ d, in place."""
    for name, v in tangent.weights.items():
        v.addcmul_(rates[name], slopes[name], value=-1)
        if name in tangent.rates:
            v.addcmul_(tangent.rates[name], directions[name], value=-1)


def _one_hots(p: Tensor) -> list[Tensor]:
    return list(torch.eye(p.numel(), dtype=p.dtype, device=p.device).reshape(p.numel(), *p.shape).unbind())


def _dot(left: Weights, right: Weights) -> Tensor:
    return sum((tensor * right[name]).sum() for name, tensor in left.items())


def _product(gradients: Weights, weights: Weights, tangent: Tangent, keep: bool) -> Weights:
    """H v: the gradient of g · v. A gradient without a graph, as at the first step, where v is 0, adds nothing."""
    names = [name for name, g in gradients.items() if g.requires_grad]
    if not names:
        return {name: torch.zeros_like(v) for name, v in tangent.weights.items()}
    outputs, weighting = ([tensors[name] for name in names] for tensors in (gradients, tangent.weights))
    return gradient(outputs, weights, weighting, retain_graph=keep)


def _moved_rates(loop: Loop, meta: Meta, here: Point, tangent: Tangent, loss: Tensor, gradients: Weights) -> Weights:
    """ṙ, for the rates that change with this tangent's number. The loss's own tangent is g · v."""

    def rates(moving: Meta, losses: Weights, weights: Weights) -> tuple[Weights]:
        return (loop.model(meta | moving, losses["loss"], weights),)

    primals = ({tangent.name: meta[tangent.name]}, {"loss": loss}, here.weights)
    tangents = ({tangent.name: tangent.seed}, {"loss": _dot(gradients, tangent.weights)}, tangent.weights)
    return pushforward(rates, primals, tangents)[0]


def _slopes(loop: Loop, here: Point, tangent: Tangent, gradients: Weights, product: Weights) -> Weights:
    """ḋ, and the tangent of the optimiser's state moved on. A linear rule does to tangents what it does to values."""
    rule, step = loop.rule, here.step
    if rule.linear:
        slopes, tangent.state = rule.direction(step, product, tangent.state, tangent.weights)
        return slopes

    def directed(gradients: Weights, weights: Weights, *state: Weights) -> tuple[Weights, ...]:
        directions, state = rule.direction(step, gradients, state, weights)
        return directions, *state

    primals, tangents = (gradients, here.weights, *here.state), (product, tangent.weights, *tangent.state)
    slopes, *state = pushforward(directed, primals, tangents)
    tangent.state = tuple(state)
    return slopes


def pushforward(function: Callable, primals: tuple[Weights, ...], tangents: tuple[Weights, ...]) -> tuple[Weights, ...]:
    """J v, for a function of some {name: tensor} to a tuple of such; what does not change is left out.

    By reverse mode twice: u·J is linear in u, so its derivative for u is J, and J v the gradient of (u·J)·v for u.
    torch.autograd.forward_ad would do it in one pass, but loads torch.jit at its first use, which takes a second.
    """
    inputs = [leaves(primal) for primal in primals]
    outputs = function(*inputs)
    moving = {(i, n): t for i, each in enumerate(outputs) for n, t in each.items() if t.requires_grad}
    if not moving:
        return tuple({} for _ in outputs)
    weighting = {key: torch.zeros_like(t, requires_grad=True) for key, t in moving.items()}
    flat = {(i, n): t for i, each in enumerate(inputs) for n, t in each.items()}
    ends, weights = list(moving.values()), list(weighting.values())
    back = torch.autograd.grad(ends, list(flat.values()), weights, create_graph=True, allow_unused=True)
    pulled = {key: t for key, t in zip(flat, back, strict=True) if t is not None and t.requires_grad}
    if not pulled:
        return tuple({} for _ in outputs)
    pushed = gradient(list(pulled.values()), weighting, [tangents[i][n] for i, n in pulled])
    return tuple({n: pushed[i, n] for n in each if (i, n) in pushed} for i, each in enumerate(outputs))
