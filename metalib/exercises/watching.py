"""An outer loop under watch: the gradient that its optimiser sees, and the way that the learned number takes."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn

from metalib.exercises.modules import redraw, unchanged
from metalib.problems import PROBLEMS, Batch
from metalib.report import Undecided


class Watcher(torch.optim.SGD):
    """SGD on one tensor that notes the gradient and the number before each step, and what came in which order."""

    def __init__(self, p: Tensor, lr: float):
        super().__init__([p], lr=lr)
        self.p, self.order, self.seen = p, "", []
        p.register_post_accumulate_grad_hook(lambda _: self.note("backward"))

    def note(self, what: str) -> None:
        self.order += what + " "

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.note("zero")
        super().zero_grad(set_to_none)

    def step(self, closure=None):
        self.note("step")
        self.seen.append((self.p.item(), None if self.p.grad is None else self.p.grad.clone()))
        return super().step(closure)


class Way(NamedTuple):
    """What an outer loop did: the number before each step and at the end, the gradients, and what it yielded."""

    numbers: list[float]
    gradients: list[Tensor | None]
    said: list[tuple[float, float]]


def classifier() -> nn.Module:
    """The second question's network, with tanh units, so that its losses are smooth, and with seeded weights."""
    net = nn.Sequential(nn.Linear(10, 10), nn.Tanh(), nn.Linear(10, 3)).double()
    redraw(net, torch.Generator().manual_seed(0))
    return net


def batches(K: int) -> tuple[list[Batch], Batch]:
    """K training batches of ten samples, and the held-out samples."""
    train, held_out = PROBLEMS["classifier"].data
    return [Batch(train.x[10 * k : 10 * k + 10], train.y[10 * k : 10 * k + 10]) for k in range(K)], held_out


def watch(answer: Callable, log_alpha: float, K: int, outer_steps: int, meta_rate: float) -> Way:
    """Run the outer loop from this log_alpha. Undecided when it is none, or when its gradient gets lost on the way."""
    own, (train, held_out) = classifier(), batches(K)
    net, leaf = deepcopy(own), torch.tensor(log_alpha, dtype=torch.float64, requires_grad=True)
    optimiser = Watcher(leaf, meta_rate)
    said = _pairs(answer(net, leaf, optimiser, train, held_out, outer_steps), outer_steps)
    if len(optimiser.seen) != outer_steps:
        few = f"optimiser.step() is called {len(optimiser.seen)} times in {outer_steps} outer steps"
        raise Undecided(f"{few} at K = {K}: it should be once in each")
    unchanged(net, own)
    if any(p.grad is not None for p in net.parameters()):
        raise Undecided(
            "The module's own weights have got gradients: the inner loop's weights are not cut off from them, so every "
            "backward() adds to their .grad"
        )
    numbers, gradients = zip(*optimiser.seen, strict=True)
    if unseen := _unseen(gradients[0], optimiser.order.split()):
        raise Undecided(f"A gradient of log_alpha arrives, but the optimiser does not see it: {unseen}")
    return Way([*numbers, leaf.item()], list(gradients), said)


def _unseen(gradient: Tensor | None, order: list[str]) -> str:
    """Why the first step saw no gradient, or zero, although one arrives; "" if none arrives, or it was seen."""
    before = order[: order.index("step")]
    if gradient is not None and gradient.any() or "backward" not in order:
        return ""
    if "backward" not in before:
        return "step() comes before backward()"
    return "zero_grad() stands between backward() and step()" if gradient is None or before[-1] == "zero" else ""


def _pairs(result, outer_steps: int) -> list[tuple[float, float]]:
    wanted = "yield (outer loss, average inner loss) once in each outer step"
    if not isinstance(result, Iterable):
        raise Undecided(f"Your function returned {type(result).__name__}: {wanted}")
    said = list(islice(result, outer_steps + 1))
    if len(said) != outer_steps:
        raise Undecided(f"Your function yielded {len(said)} times in {outer_steps} outer steps: {wanted}")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in said):
        raise Undecided(f"Your function yielded {type(said[0]).__name__}: {wanted}")
    return [tuple(each.item() if isinstance(each, Tensor) else float(each) for each in pair) for pair in said]
