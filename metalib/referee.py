"""The referee: is this meta-gradient right? It needs no second implementation, and works on broken code too.

A loop that hides an update from autograd still computes the update. So its outer loss, evaluated at slightly different
meta-parameters, shows the gradient that autograd should have claimed. The referee compares the two:

    report = referee(meta_step, meta)
    report.verdict                     one of VERDICTS
    report.claimed, report.expected    per meta-parameter: what autograd says, what central differences say

What it cannot see: a right gradient of the wrong program, such as an outer loss taken on the training batch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from metalib.differences import slope_at
from metalib.rates import Meta
from metalib.settings import Settings
from metalib.unroll import meta_step, one_thread

# Worst first: a report's verdict is the first of these that one of its meta-parameters got.
VERDICTS = {
    "raises": "the step or its differentiation raises",
    "nan": "the outer loss, or a gradient, is not finite",
    "wrong": "autograd gives a number, but not the right one",
    "cut": "the outer loss depends on it, but autograd says None or zero",
    "independent": "the outer loss does not depend on it at all",
    "right": "autograd and finite differences agree",
}


class Undecided(ValueError):
    """The referee cannot judge this step; the message says why and what to change."""


@dataclass(frozen=True)
class Report:
    """What the referee found. `error` is the exception when the verdict is "raises"; it keeps class and message."""

    verdict: str
    by_parameter: dict[str, str]
    claimed: dict[str, Tensor | None]
    expected: dict[str, Tensor | None]
    error: Exception | None = None

    def __str__(self):
        lines = [f"{self.verdict}: {VERDICTS[self.verdict]}"]
        if self.error is not None:
            lines.append(f"  {type(self.error).__name__}: {self.error}")
        for name, verdict in self.by_parameter.items():
            claimed, expected = (_short(side[name]) for side in (self.claimed, self.expected))
            lines.append(f"  {name}: autograd {claimed}, finite differences {expected} ({verdict})")
        return "\n".join(lines)


def _short(gradient: Tensor | None) -> str:
    if gradient is None:
        return "None"
    numbers = [f"{number:.6g}" for number in gradient.flatten()[:4].tolist()]
    more = ", …" if gradient.numel() > 4 else ""
    return numbers[0] if gradient.numel() == 1 else f"[{', '.join(numbers)}{more}]"


def referee(step: Callable[[Meta], Tensor], meta: Meta, rtol: float = 1e-6) -> Report:
    """Judge the gradient of `step` at `meta`, in float64.

    step    {name: tensor} -> scalar outer loss; called many times, so it must start from the same weights and the same
            data each time. The global random state is put back before each call and at the end.
    meta    {name: floating tensor of any shape}; copied to float64, never changed.
    rtol    "right" means within this relative error, or within what the finite differences can resolve.

    Costs about 8 calls of `step` for each number in `meta`. Raises Undecided when the step cannot be judged: it gives
    another loss each time, its loss is not one float64 number, or its finite differences do not settle.
    """
    if not meta or not all(isinstance(p, Tensor) and p.is_floating_point() for p in meta.values()):
        raise Undecided(f"meta is {meta!r}: give a dict of floating tensors, such as {{'rate': torch.tensor(0.1)}}")
    step, state = _same_random_state(step), torch.get_rng_state()
    try:
        claimed, loss, error = _claims(step, meta)
        expected = dict.fromkeys(meta)
        if loss is None:
            verdicts = dict.fromkeys(meta, "raises")
        elif not math.isfinite(loss):
            verdicts = dict.fromkeys(meta, "raises" if error else "nan")
        else:
            _check_repeatable(step, meta, loss)
            verdicts = {}
            for name in meta:
                expected[name], noise, values = _differences(step, meta, name, claimed[name], rtol)
                depends, scale = any(value != loss for value in values), max(map(abs, values), default=0.0)
                verdict = error or _verdict(name, claimed[name], expected[name], noise, depends, scale, rtol)
                verdicts[name] = "raises" if error else verdict
    finally:
        torch.set_rng_state(state)
    worst = next(verdict for verdict in VERDICTS if verdict in verdicts.values())
    return Report(worst, verdicts, claimed, expected, error)


def judge(settings: Settings) -> Report:
    """The referee's report on the first outer step of a run of ours."""
    with one_thread():
        return referee(*meta_step(settings))


def _same_random_state(step):
    state = torch.get_rng_state()

    def repeated(meta):
        torch.set_rng_state(state)
        return step(meta)

    return repeated


def _leaves(meta: Meta) -> Meta:
    return {name: p.detach().double().clone().requires_grad_() for name, p in meta.items()}


def _claims(step, meta):
    """(gradients that autograd claims, loss, error): the loss is None when the forward pass itself raised."""
    leaves, loss = _leaves(meta), None
    nothing = dict.fromkeys(meta)
    try:
        loss = step(leaves)
        value = _number(loss)
        if not loss.requires_grad:
            return nothing, value, None
        grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        return dict(zip(leaves, (None if g is None else g.detach() for g in grads), strict=True)), value, None
    except Undecided:
        raise
    except Exception as error:  # whatever the reader's code raises is the finding
        return nothing, None if loss is None else _number(loss), error


def _number(loss) -> float:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"{type(loss).__name__}"
        raise Undecided(f"the step returned {what}: return the outer loss as one number, for instance loss.mean()")
    if loss.dtype != torch.float64:
        raise Undecided(f"the outer loss is {loss.dtype}: build weights and data in float64, such as model.double()")
    return loss.item()


def _check_repeatable(step, meta, loss: float) -> None:
    again = _number(step(_leaves(meta)))
    if again != loss:
        raise Undecided(
            f"the step gives another loss each time ({loss:.9g}, then {again:.9g}): draw the batches and copy the "
            "weights before it, and seed any generator inside it"
        )


def _differences(step, meta: Meta, name: str, claimed: Tensor | None, rtol: float):
    """(gradient, its error, all losses that were seen), the first two for every number in meta[name]."""
    gradient = torch.zeros(meta[name].shape, dtype=torch.float64)
    noise, values = torch.zeros_like(gradient), []
    for index in range(gradient.numel()):
        start = meta[name].detach().double().flatten()[index].item()

        def loss_at(number, index=index):
            leaves = _leaves(meta)
            with torch.no_grad():
                leaves[name].view(-1)[index] = number
            try:
                loss = step(leaves)
            except Exception:  # it ran at the start: a number this far away is outside its domain
                return math.nan
            values.append(_number(loss))
            return values[-1]

        claim = None if claimed is None else claimed.flatten()[index].item()
        gradient.view(-1)[index], noise.view(-1)[index] = slope_at(loss_at, start, claim, rtol)
    return gradient, noise, values


def _verdict(name: str, claimed, expected, noise, depends: bool, scale: float, rtol: float) -> str:
    silent = claimed is None or not claimed.any()
    if silent and not depends:
        return "independent"
    if not expected.isfinite().all() or (claimed is not None and not claimed.isfinite().all()):
        return "nan"
    resolved = 4 * noise
    if (resolved > (1e-3 * expected.abs()).clamp(min=1e-7 * scale)).any():
        worst = (resolved - 1e-3 * expected.abs()).argmax()
        raise Undecided(
            f"finite differences of {name} do not settle ({expected.view(-1)[worst]:.3g} ± "
            f"{resolved.view(-1)[worst]:.1g}): the outer loss is not smooth there; try other starting values, or "
            "fewer inner steps"
        )
    if claimed is None:
        return "cut"
    close = (claimed.cpu() - expected).abs() <= rtol * expected.abs() + resolved
    if close.all():
        return "right"
    return "cut" if silent else "wrong"
