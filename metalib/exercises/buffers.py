"""Notebook 04: fast weights in buffers, and where to cut an outer loop."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from metalib.exercises.carried import Learn, examine_outer_loop
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import LOOKALIKES, Descend, descend
from metalib.exercises.loops import REASONS, STEPS, Case, examine_cases
from metalib.rates import Meta
from metalib.report import Undecided
from metalib.train import Run

Update = Callable[[list[nn.Module], Tensor, int, Callable[[], Tensor]], None]


class Layer(nn.Module):
    """A layer's weight as a buffer. Who uses it computes with it; it does nothing itself."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.register_buffer("weight", weight)


class Layered(NamedTuple):
    """A model with a weight for each layer, and its losses as functions of the list of weights."""

    name: str
    start: list[Tensor]
    inner: Callable[[list[Tensor]], Tensor]
    outer: Callable[[list[Tensor]], Tensor]

    def flat(self) -> Tensor:
        return torch.cat([w.flatten() for w in self.start])

    def split(self, w: Tensor) -> list[Tensor]:
        pieces = w.split([start.numel() for start in self.start])
        return [piece.view_as(start) for piece, start in zip(pieces, self.start, strict=True)]


def nets() -> list[Layered]:
    """One weight that fits y = 2x, and a 3-4-1 network with tanh units that fits a sum of sines, layer by layer."""
    generator = torch.Generator().manual_seed(0)
    x, held_x = torch.randn(2, 20, 3, dtype=torch.float64, generator=generator)
    hidden, out = (0.5 * torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((3, 4), (4,)))

    def line(x):
        return lambda weights: ((weights[0] * x[:, 0] - 2 * x[:, 0]) ** 2).mean()

    def network(x):
        y = x.sin().sum(dim=1)
        return lambda weights: ((torch.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    one = torch.tensor(1.0, dtype=torch.float64)
    return [
        Layered("one weight", [one], line(x), line(held_x)),
        Layered("network", [hidden, out], network(x), network(held_x)),
    ]


def _one_layer(first: bool) -> Descend:
    """A loop that moves only the hidden layer's weights, the first three quarters of all, or only the others."""

    def loop(w, rate, K, loss):
        hidden = torch.arange(len(w)) < len(w) * 3 // 4
        for _ in range(K):
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
            w = w - rate * grad * (hidden == first)
        return w

    return loop


LOOKS = LOOKALIKES | {"first layer": _one_layer(True), "last layer": _one_layer(False)}
UPDATED = "layer is updated: each of the layers has to take its step"


@exercise("4.1", "Buffers that keep the graph", minutes=6)
def keep_the_graph(answer: Update) -> Finding:
    reasons = {
        "cut": _how_cut(answer),
        "first layer": f"only the first {UPDATED}",
        "last layer": f"only the last {UPDATED}",
    }
    finding = examine_cases((_case(answer, net, K) for K in STEPS for net in nets()), reasons)
    if not finding.solved or all(layer.weight is dict(layer.named_buffers()).get("weight") for layer in _after(answer)):
        return finding
    lost = (
        "The gradients are right, but a weight is no longer a buffer: the module's `.to()` and `state_dict()` miss it."
    )
    return Finding(False, lost, finding.seen)


def _case(answer: Update, net: Layered, K: int) -> Case:
    """The answer's outer loss beside the right one; the latter, and the lookalikes, keep all weights in one tensor."""

    def outer(meta: Meta) -> Tensor:
        return net.outer(_weights(_run(answer, net, meta["rate"], K), net))

    def flat(loop: Descend, meta: Meta) -> Tensor:
        start = net.flat().requires_grad_()
        return net.outer(net.split(loop(start, meta["rate"], K, lambda w: net.inner(net.split(w)))))

    rate = torch.tensor(0.1, dtype=torch.float64)
    looks = {kind: partial(flat, loop) for kind, loop in LOOKS.items()}
    return Case(net.name, K, outer, {"rate": rate}, partial(flat, descend), looks)


def _run(answer: Update, net: Layered, rate: Tensor, K: int) -> list[Layer]:
    """The layers after the answer has had them. Each weight is computed, so it requires grad and is no leaf."""
    layers = [Layer(w.clone().requires_grad_().clone()) for w in net.start]
    answer(list(layers), rate, K, lambda: net.inner(_weights(layers, net)))
    return layers


def _weights(layers: list[Layer], net: Layered) -> list[Tensor]:
    weights = [getattr(layer, "weight", None) for layer in layers]
    for number, (w, start) in enumerate(zip(weights, net.start, strict=True)):
        if not isinstance(w, Tensor) or w.shape != start.shape:
            what = f"of shape {tuple(w.shape)}" if isinstance(w, Tensor) else f"{w!r:.40}"
            raise Undecided(f"after your loop layers[{number}].weight is {what}: keep a tensor of the same shape")
    return weights


def _after(answer: Update) -> list[Layer]:
    return _run(answer, nets()[1], torch.tensor(0.1, dtype=torch.float64, requires_grad=True), 2)


def _how_cut(answer: Update) -> str:
    """Of an answer through which no gradient reaches the rate: what has become of a weight after one step."""
    _, net = nets()
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    layers = [Layer(w.clone().requires_grad_().clone()) for w in net.start]
    before = [layer.weight for layer in layers]
    try:
        answer(list(layers), rate, 1, lambda: net.inner(_weights(layers, net)))
    except Exception:  # examine_cases says what it raises
        return REASONS["cut"]
    pairs = list(zip(before, _weights(layers, net), strict=True))
    if any(isinstance(now, nn.Parameter) for _, now in pairs):
        return "a weight has become an nn.Parameter, a new leaf: it has the value, and no history"
    if any(now is old for old, now in pairs):
        return "a buffer is still the tensor that it was: it has been written to without autograd's knowledge"
    if any(now.grad_fn is None for _, now in pairs):
        return "a buffer holds a new tensor, as it should, but one without a history"
    return "the new weights remember the old ones, but not the rate"


@exercise("4.2", "Where to cut", minutes=7)
def where_to_cut(answer: Learn) -> Finding:
    return examine_outer_loop(answer)


@goal(
    "04",
    "buffer_copy on the classifier at the largest K that runs, and at one more; on another problem at K = 5 or more",
)
def as_far_as_it_goes(runs: list[Run]) -> str:
    copies = [run for run in runs if run.settings.version == "buffer_copy"]
    raising = {run.settings.inner_steps for run in copies if run.settings.problem == "classifier" and run.error}
    running = [run.settings for run in copies if run.records and not run.error]
    largest = max((each.inner_steps for each in running if each.problem == "classifier"), default=0)
    far = [each for each in running if each.inner_steps >= 5 and each.problem != "classifier"]
    if not (largest and largest + 1 in raising and far):
        return ""
    return (
        f"On the classifier it runs at K = {largest} and raises at K = {largest + 1}; on {far[0].problem!r}, where the "
        f"prediction is linear in the weight, it runs at K = {far[0].inner_steps}."
    )
