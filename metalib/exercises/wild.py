"""Notebook 09: optimisers in the wild."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.autograd import grad

from metalib.describe import is_cut
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import Descend, Loss, Model, descend, models
from metalib.exercises.loops import STEPS, Case, examine_cases, near, weights
from metalib.exercises.values import examine_table
from metalib.optimisers import Adam
from metalib.rates import Meta
from metalib.train import Run

CLOSE = 1e-5  # of the outer loss: room for ways to keep a root away from zero


@exercise("9.1", "Adam, repaired", minutes=10)
def adam_repaired(answer: Descend) -> Finding:
    def outer(model: Model, K: int, loop: Descend, meta: Meta) -> Tensor:
        w = loop(model.start.clone().requires_grad_(), meta["rate"], K, model.inner)
        return model.outer(weights(w, model.start))

    def truth(model: Model, K: int, meta: Meta) -> Tensor:
        """Adam's outer loss; the answer's own where that is the same but for its last digits."""
        mine, adams = (outer(model, K, loop, meta) for loop in (answer, adam))
        return mine if abs(mine - adams) <= CLOSE * abs(adams) else adams

    rate = {"rate": torch.tensor(0.05, dtype=torch.float64)}
    cases = []
    for K in STEPS:
        for model in (*models(), relu_network()):
            looks = {kind: partial(outer, model, K, loop) for kind, loop in LOOKALIKES.items()}
            step = partial(outer, model, K, answer)
            cases.append(Case(model.name, K, step, rate, partial(truth, model, K), looks))
    return examine_cases(cases, REASONS)


def relu_network() -> Model:
    """A 4-8-1 network on positive inputs: some of its units are off at every point, so some gradients are exactly 0."""
    generator = torch.Generator().manual_seed(0)
    x, held_x = torch.rand(2, 20, 4, dtype=torch.float64, generator=generator)
    start = 0.5 * torch.randn(40, dtype=torch.float64, generator=generator)

    def loss_on(x: Tensor) -> Loss:
        y = (3 * x).sin().sum(dim=1) - 2
        return lambda w: ((torch.relu(x @ w[:32].view(4, 8)) @ w[32:] - y) ** 2).mean()

    return Model("network with ReLU units", start, loss_on(x), loss_on(held_x))


def adam(w: Tensor, rate: Tensor, K: int, loss: Loss) -> Tensor:
    rule, weights = Adam(), {"w": w}
    state = rule.start(weights)
    for step in range(K):
        (grad,) = torch.autograd.grad(loss(weights["w"]), weights["w"], create_graph=True)
        direction, state = rule.direction(step, {"w": grad}, state, weights)
        weights = {"w": weights["w"] - rate * direction["w"]}
    return weights["w"]


def _same(t: Tensor) -> Tensor:
    return t


def _like_adam(w, rate, K, loss, graph=True, start=_same, mean=_same, kept=_same, root=_same, corrected=True):
    """Adam with a fault: a part of it goes through a function, or is left out."""
    means, squares = torch.zeros_like(w), torch.zeros_like(w)
    for step in range(1, K + 1):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=graph)
        means, squares = 0.9 * kept(means) + 0.1 * mean(grad), 0.999 * kept(squares) + 0.001 * grad**2
        unbias, unbias_squares = (1 - 0.9**step, 1 - 0.999**step) if corrected else (1.0, 1.0)
        size = (squares / unbias_squares + 1e-16).sqrt() + 1e-8
        w = start(w) - rate * means / unbias / root(size)
    return w


LOOKALIKES: dict[str, Descend] = {
    "first order": partial(_like_adam, graph=False),
    "root cut": partial(_like_adam, root=torch.Tensor.detach),
    "mean cut": partial(_like_adam, mean=torch.Tensor.detach),
    "memory cut": partial(_like_adam, kept=torch.Tensor.detach),
    "weights cut": partial(_like_adam, start=torch.Tensor.detach),
    "uncorrected": partial(_like_adam, corrected=False),
    "no root": partial(_like_adam, root=lambda size: 1.0),
    "squares": partial(_like_adam, root=torch.square),
    "still": lambda w, rate, K, loss: w + 0 * rate,
    "uphill": lambda w, rate, K, loss: adam(w, -rate, K, loss),
    "too few": lambda w, rate, K, loss: adam(w, rate, K - 1, loss) + 0 * rate,
    "too many": lambda w, rate, K, loss: adam(w, rate, K + 1, loss),
}
REASONS = {
    "nan": "somewhere an infinite slope meets a zero; units that are off make some gradients exactly 0",
    "root cut": "the root has no history: that hides its infinite slope, and a part of the gradient with it",
    "mean cut": "the mean of the gradients has no history",
    "memory cut": "what Adam remembers from step to step has lost its history",
    "uncorrected": "the outer loss is that of Adam without the two corrections for a memory that starts at 0",
    "no root": "the outer loss is that of steps that are not divided by the root",
    "squares": "the outer loss is that of a division by the squares, not by their root",
    "other loss": "the outer loss is not Adam's, so this is another program",
}


Step = Callable[[Loss, Tensor, int, int], Tensor]
GRADIENTS: dict[str, Step] = {
    "bare": lambda loss, w, k, K: grad(loss(w), w)[0],
    "retained": lambda loss, w, k, K: grad(loss(w), w, retain_graph=True)[0],
    "detached": lambda loss, w, k, K: grad(loss(w), w, create_graph=True)[0].detach(),
    "copy": lambda loss, w, k, K: grad(loss(c := w.detach().requires_grad_()), c, create_graph=True)[0],
    "not first": lambda loss, w, k, K: grad(loss(w), w, create_graph=k > 0)[0],
    "only last": lambda loss, w, k, K: grad(loss(w), w, create_graph=k == K - 1)[0],
}
AT_ONE = "the only inner gradient is taken at the start. It does not depend on the rate, so it may be a constant."
BECAUSE = {
    "bare": "without the flag each inner gradient is a constant, and from the second step on it should not be.",
    "retained": "`retain_graph` keeps a graph from being freed. It builds none for the gradient.",
    "detached": "the graph of the gradient is built and thrown away: first order, on purpose or not.",
    "copy": "the flag is there, but the graph of the gradient ends at the copy, which has no history.",
    "not first": "only the first step goes without a graph, and there nothing is lost.",
    "only last": "the second, third and fourth gradient depend on the rate too, and have no graph.",
}
ONLY_LAST = "of two gradients only the second depends on the rate, and it has its graph."


@exercise("9.2", "First order by mistake?", minutes=6)
def first_order_by_mistake(answer: dict) -> Finding:
    truth = {(name, K): _verdict(name, K) for name in GRADIENTS for K in STEPS}
    because = {(name, K): AT_ONE if K == 1 else BECAUSE[name] for name, K in truth}
    because["only last", 2] = ONLY_LAST
    rows = answer if isinstance(answer, dict) else {}
    if set(rows) != set(GRADIENTS) or not all(isinstance(row, list | tuple) and len(row) == 3 for row in rows.values()):
        loops = ", ".join(map(repr, GRADIENTS))
        return Finding(False, f"Give a dict with three verdicts, for K = 1, 2 and 5, for each of {loops}.")
    cells = {(name, K): word for name, row in rows.items() for K, word in zip(STEPS, row, strict=True)}
    return examine_table(cells, truth, because, ("raises", "cut", "wrong", "right"))


def _verdict(name: str, K: int) -> str:
    """All these loops take the same steps, so the right gradient is that of the loop as it should be."""
    network, gradient = models()[1], GRADIENTS[name]
    rate = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    w = network.start.clone().requires_grad_()
    right = descend(w, rate, K, network.inner)
    for k in range(K):
        w = w - rate * gradient(network.inner, w, k, K)
    mine, truth = (grad(network.outer(end), rate)[0].item() for end in (w, right))
    return "right" if near(mine, truth) else "wrong"


@goal("09", "the version that writes into clones, running and stopped; and the one that makes a number of the rate")
def both_found(runs: list[Run]) -> str:
    clones = [run for run in runs if run.settings.version == "in_place_clone"]
    stopped = [run for run in clones if run.error and not run.records]
    same = {run.settings.problem for run in stopped}
    running = [run for run in clones if run.records and not run.error and run.settings.problem in same]
    numbers = [run for run in runs if run.settings.version == "item" and not run.error and is_cut(run)]
    if not (stopped and running and numbers):
        return ""
    most, least = max(run.settings.inner_steps for run in running), min(run.settings.inner_steps for run in stopped)
    if least > most + 1:
        return ""
    return f"in_place_clone runs at K = {most} and raises at K = {least}; no gradient reaches the rate of item."
