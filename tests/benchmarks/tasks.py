"""What is measured: three meta-learning tasks in plain numbers, so that no contestant pays for another's library.

    task = TASKS["classifier"]()

    task.weights        {name: array}, where every inner loop starts
    task.inner          [(x, y), ...], walked through in turn
    task.outer          (x, y) of the outer loss
    task.meta           {name: number}: {"rate": α}, or slope and offset of rate = softplus(slope · loss + offset)
    task.inner_steps    the K that are timed

    runs = sweep(64)    as many classifiers, each with its own data, weights and rate

Everything is drawn in float64; a contestant casts it once, before the clock runs.
"""

from dataclasses import dataclass

import numpy as np

# Adam moves a meta-parameter by about this much a step, whatever the gradient. It is tiny so that thousands of timed
# outer steps leave every contestant at the same rate, on the same arithmetic.
OUTER_RATE = 1e-7


@dataclass(frozen=True)
class Task:
    """One task; `labels` says whether y holds classes (cross-entropy) or numbers (mean squared error)."""

    name: str
    weights: dict
    inner: list
    outer: tuple
    meta: dict
    inner_steps: tuple
    labels: bool

    @property
    def from_loss(self) -> bool:
        """Whether the rate is a function of the loss, new at every inner step."""
        return "slope" in self.meta


def one_weight() -> Task:
    """Fit y = 2x with one weight from 1, rate = softplus(slope · loss + offset): about 0.01.

    A rate so low keeps the loss away from 0 for a hundred steps: rounding is all that is left to compare there.
    """
    x = np.random.default_rng(0).standard_normal(100)
    batch = (x, 2 * x)
    meta = {"slope": 0.1, "offset": -4.6}
    return Task("one weight", {"w": np.array(1.0)}, [batch], batch, meta, (1, 5, 20, 100), labels=False)


def network(name: str, sizes: tuple, batch: int, outer: int, rate: float, inner_steps: tuple, seed=0) -> Task:
    """A ReLU network with one hidden layer; the class is the largest of some fixed linear functions of the input."""
    random = np.random.default_rng(seed)
    inputs, hidden, classes = sizes

    def layer(fan_in, shape):
        return random.uniform(-1, 1, shape) * fan_in**-0.5

    weights = {
        "fc1.weight": layer(inputs, (hidden, inputs)),
        "fc1.bias": layer(inputs, hidden),
        "fc2.weight": layer(hidden, (classes, hidden)),
        "fc2.bias": layer(hidden, classes),
    }
    teacher = random.standard_normal((inputs, classes))

    def draw(samples):
        x = random.uniform(size=(samples, inputs))
        return x, ((x - 0.5) @ teacher).argmax(axis=1)

    return Task(name, weights, [draw(batch) for _ in range(10)], draw(outer), {"rate": rate}, inner_steps, labels=True)


def classifier(rate: float = 0.1, seed: int = 0) -> Task:
    return network("classifier", (10, 10, 3), 10, 100, rate, inner_steps=(1, 5, 10, 50), seed=seed)


def wide() -> Task:
    return network("784-256-10", (784, 256, 10), 64, 64, rate=0.02, inner_steps=(1, 10, 50, 200))


def sweep(runs: int) -> list[Task]:
    return [classifier(rate, seed) for seed, rate in enumerate(np.geomspace(0.01, 0.5, runs))]


TASKS = {"one weight": one_weight, "classifier": classifier, "784-256-10": wide}
