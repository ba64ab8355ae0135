"""What the weights should learn, and what the right answer is.

A problem is three functions behind one signature, and a fourth where the truth is known without autograd:

    weights = problem.initial_weights(generator)      {name: tensor}, where every inner loop starts
    task = problem.sample(inner_steps, generator)     one batch for each inner step, one for the outer loss
    loss = problem.loss(weights, batch)               a scalar; the inner and the outer loss are the same function
    rate = problem.best_rate(inner_steps)             the constant rate with the smallest expected outer loss, or None

Data and weights are drawn on the CPU in float64 and moved afterwards (`tasks.place`), so that a seed means the same
numbers on every device.

>>> from metalib.problems import PROBLEMS, Classifier, NoisyQuadratic
>>> [round(problem.best_rate(inner_steps=1), 2) for problem in (PROBLEMS["one weight"], NoisyQuadratic(noise=2.0))]
[0.48, 0.2]
>>> Classifier(labels="random").data[0].x.shape
torch.Size([100, 10])
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from metalib.noisy import one_weight_rate, quadratic_rate
from metalib.tasks import Batch, Task, Weights


@dataclass(frozen=True)
class OneWeight:
    """The first question: fit y = 2x with a single weight that starts at 1.

    All inner steps and the outer loss of a task use the same `points` draws of x ~ N(0, 1), as in the question. The
    loss is mean((w x - 2x)²) = ½ h (w - 2)² with the curvature h = 2 mean(x²), so everything has a closed form.
    """

    name: str = "one weight"
    points: int = 100
    start: float = 1.0
    target: float = 2.0

    def initial_weights(self, generator: torch.Generator) -> Weights:
        return {"w": torch.tensor(self.start, dtype=torch.float64)}

    def sample(self, inner_steps: int, generator: torch.Generator) -> Task:
        x = torch.randn(self.points, dtype=torch.float64, generator=generator)
        batch = Batch(x, self.target * x)
        return Task([batch] * inner_steps, batch)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        return F.mse_loss(weights["w"] * batch.x, batch.y)

    def meta_gradient(self, rate: float, batch: Batch, inner_steps: int) -> float:
        """d outer loss / d rate after `inner_steps` steps at a constant rate: -K h² (1 - rate·h)^(2K-1) (w₀ - c)².

        Each step multiplies w - c by (1 - rate·h), so the outer loss is ½ h (1 - rate·h)^(2K) (w₀ - c)²; this is its
        derivative.
        """
        h = 2 * (batch.x**2).mean().item()
        return -inner_steps * h**2 * (1 - rate * h) ** (2 * inner_steps - 1) * (self.start - self.target) ** 2

    def best_rate(self, inner_steps: int) -> float:
        """The rate that minimises the expected outer loss E[m (1 - 2 m rate)^(2K)], where m = mean(x²)."""
        return one_weight_rate(self.points, inner_steps)


class Net(nn.Module):
    """The second question's network: 10 inputs, 10 hidden ReLU units, 3 classes."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 10)
        self.fc2 = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


# The module gives names, shapes and the forward pass, never numbers: its own weights stay on the meta device, so a
# forward pass that forgot to use ours would fail instead of quietly using others.
with torch.device("meta"):
    _NET = Net()


@dataclass(frozen=True)
class Classifier:
    """The second question: a 10-10-3 ReLU classifier on 100 samples in batches of 10, its loss the cross-entropy.

    `labels` is "structured" (the class is the largest of three fixed linear functions of the input) or "random" (as in
    the question). The inner steps walk through the 100 training samples in a fresh order; the outer loss is taken on
    100 other samples. With random labels nothing that is learned from the first helps on the second: no constant
    prediction is better than ln 3 ≈ 1.0986 on balanced classes. There is no closed form; the truth is the finite
    differences of the referee.
    """

    name: str = "classifier"
    labels: str = "structured"
    samples: int = 100
    batch_size: int = 10

    @cached_property
    def data(self) -> tuple[Batch, Batch]:
        """Training and held-out samples. The same for every seed of a run, as a data set on disk would be."""
        generator = torch.Generator().manual_seed(0)
        x = torch.rand(2 * self.samples, 10, dtype=torch.float64, generator=generator)
        if self.labels == "random":
            y = torch.randperm(2 * self.samples, generator=generator) % 3  # each class equally often
        else:
            teacher = torch.randn(10, 3, dtype=torch.float64, generator=generator)
            y = ((x - 0.5) @ teacher).argmax(dim=1)
        return Batch(x[: self.samples], y[: self.samples]), Batch(x[self.samples :], y[self.samples :])

    def initial_weights(self, generator: torch.Generator) -> Weights:
        """Uniform in ±1/√fan_in, as nn.Linear does, but from the run's own generator."""
        weights = {}
        for name, parameter in _NET.named_parameters():
            layer = _NET.get_submodule(name.rpartition(".")[0])
            bound = layer.in_features**-0.5
            draw = torch.rand(parameter.shape, dtype=torch.float64, generator=generator)
            weights[name] = (2 * draw - 1) * bound
        return weights

    def sample(self, inner_steps: int, generator: torch.Generator) -> Task:
        train, held_out = self.data
        passes = -(-inner_steps * self.batch_size // self.samples)
        order = torch.cat([torch.randperm(self.samples, generator=generator) for _ in range(passes)])
        order = order[: inner_steps * self.batch_size]
        rows = train.x[order].split(self.batch_size), train.y[order].split(self.batch_size)
        return Task(list(map(Batch, *rows)), held_out)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        return F.cross_entropy(functional_call(_NET, weights, (batch.x,)), batch.y)

    def best_rate(self, inner_steps: int) -> None:
        return None


@dataclass(frozen=True)
class NoisyQuadratic:
    """Two directions, one steep and one flat, and noise: the loss is ½ Σ h (w - y)², with h the curvatures.

    Each inner step sees another y, drawn around 0 with the variance noise² / h: the variance of the gradient's noise is
    then in proportion to the curvature. The outer loss has y = 0. A batch holds h as `x`, and `y`.
    """

    name: str = "noisy quadratic"
    curvatures: tuple[float, ...] = (1.0, 0.02)
    starts: tuple[float, ...] = (1.0, 1.0)
    noise: float = 0.1

    def initial_weights(self, generator: torch.Generator) -> Weights:
        return {"w": torch.tensor(self.starts, dtype=torch.float64)}

    def sample(self, inner_steps: int, generator: torch.Generator) -> Task:
        h = torch.tensor(self.curvatures, dtype=torch.float64)
        y = torch.randn(inner_steps, len(h), dtype=torch.float64, generator=generator) * self.noise / h.sqrt()
        return Task([Batch(h, each) for each in y], Batch(h, torch.zeros_like(h)))

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        return (batch.x * (weights["w"] - batch.y) ** 2).sum() / 2

    def best_rate(self, inner_steps: int) -> float:
        """The rate that minimises the expected outer loss; its second moments have a closed form."""
        return quadratic_rate(inner_steps, self.curvatures, self.starts, self.noise)


_RANDOM = Classifier("classifier, random labels", labels="random")
PROBLEMS = {problem.name: problem for problem in (OneWeight(), Classifier(), _RANDOM, NoisyQuadratic())}
