"""What the referee says: the verdicts, the report that carries one, and the refusal to give any."""

import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

CONVERGED = 1e-15  # beside weights of order one, a smaller outer loss is made of rounding
# Worst first: a report's verdict is the first of these that one of its meta-parameters got.
VERDICTS = {
    "raises": "the step or its differentiation raises",
    "nan": "the outer loss, or a gradient, is not finite",
    "wrong": "autograd gives a number, but not the right one",
    "cut": "the outer loss depends on it, but autograd says None or zero",
    "independent": "the outer loss does not change with it near this value",
    "right": "autograd and finite differences agree",
}
# The doctor has one more, for a whole training loop.
MEANINGS = VERDICTS | {"loop": "the step may be right, the loop around it is not"}


class Undecided(ValueError):
    """The referee cannot judge this step; the message says why and what to change.

    >>> import torch
    >>> from metalib.referee import referee
    >>> referee(lambda meta: 1.0, {"rate": torch.tensor(0.5)})
    Traceback (most recent call last):
    metalib.report.Undecided: the step returned float: return the outer loss as one number, for instance loss.mean()
    """


@dataclass(frozen=True)
class Report:
    """What the referee found. `error` is the exception when the verdict is "raises"; it keeps class and message.

    In `by_parameter` a meta-parameter may also be "undecided", beside another whose verdict is bad enough to report.

    >>> import torch
    >>> from metalib.referee import referee
    >>> report = referee(lambda meta: (1 - meta["rate"]) ** 2, {"rate": torch.tensor(0.5)})
    >>> report.verdict, report.claimed
    ('right', {'rate': tensor(-1., dtype=torch.float64)})
    """

    verdict: str
    by_parameter: dict[str, str]
    claimed: dict[str, Tensor | None]
    expected: dict[str, Tensor | None]
    error: Exception | None = None

    def __str__(self):
        lines = [f"{self.verdict}: {MEANINGS[self.verdict]}"]
        if self.error is not None:
            lines.append(fold(f"  {type(self.error).__name__}: {self.error}", 4))
        for name, verdict in self.by_parameter.items():
            claimed, expected = (short(side[name]) for side in (self.claimed, self.expected))
            lines.append(f"  {name}: autograd {claimed}, finite differences {expected} ({verdict})")
        return "\n".join(lines)


def fold(text: str, indent: int = 2) -> str:
    """Lines of at most 100 characters, since a notebook breaks longer ones in the middle of a word."""
    fill = {"subsequent_indent": " " * indent, "break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.fill(line, 100, **fill) if len(line) > 100 else line for line in text.split("\n"))


def short(gradient: Tensor | None) -> str:
    if gradient is None:
        return "None"
    numbers = [f"{number:.6g}" for number in gradient.flatten()[:4].tolist()]
    more = ", …" if gradient.numel() > 4 else ""
    return numbers[0] if gradient.numel() == 1 else f"[{', '.join(numbers)}{more}]"


class Evidence(NamedTuple):
    """For one meta-parameter, number by number: autograd's claim, the slope that differences see and its doubt, and
    whether the loss is flat there. For all together: whether the loss moved at all, and only in float32's numbers."""

    claimed: Tensor | None
    slope: Tensor
    doubt: Tensor
    flat: Tensor
    depends: bool
    single: bool


def verdict(name: str, evidence: Evidence, loss: float, rtol: float) -> str:
    """One of VERDICTS, or Undecided: the claim must lie within `rtol` of the slope, or within the doubt of it."""
    claimed, slope, doubt, flat, depends, single = evidence
    if claimed is not None and not claimed.isfinite().all():
        return "nan"
    silent = claimed is None or not claimed.any()
    if silent and not depends and abs(loss) >= CONVERGED:
        return "independent"
    if claimed is None and depends:
        return "cut"
    claim = torch.zeros_like(slope) if claimed is None else claimed
    size = torch.maximum(claim.abs(), slope.abs())
    agrees = flat | ((claim - slope).abs() <= rtol * slope.abs() + doubt)
    unsure = ~flat & ~(doubt <= (max(1e-3, 10 * rtol) * size).clamp(min=1e-7 * abs(loss)))  # true of nan as well
    moved = depends or abs(loss) >= CONVERGED
    if moved and agrees.all() and not unsure.any():
        return "right"
    if abs(loss) < CONVERGED:
        raise Undecided(
            f"the outer loss is {loss:.1g}: it has converged, and what is left of it is rounding; judge it with fewer "
            "inner steps, or from another starting value"
        )
    if single and rtol < 1e-3:
        raise Undecided(
            "every outer loss is a float32 number, even if its dtype is float64: differences cannot see behind that "
            "rounding; build weights and data in float64, such as model.double()"
        )
    if unsure.any():
        raise Undecided(
            f"finite differences of {name} do not settle ({slope[unsure][0]:.3g} ± {doubt[unsure][0]:.1g}): the outer "
            "loss is not smooth there, or something inside it is float32; try float64 throughout, other starting "
            "values, or fewer inner steps"
        )
    return "cut" if silent else "wrong"


def reachable(nodes, stop=frozenset()) -> dict:
    """The nodes that a way leads to from `nodes`, without passing one of `stop`: a dict's keys, to keep an order."""
    seen, todo = {}, list(nodes)
    while todo:
        node = todo.pop()
        if node is not None and node not in seen and node not in stop:
            seen[node] = None
            todo += [child for child, _ in node.next_functions]
    return seen
