"""Notebook 08: the edge of stability, and horizons. (The outer loop that is thrown out is judged in thrown.py.)"""

from collections.abc import Callable
from functools import lru_cache
from numbers import Real

import torch
from torch import Tensor

from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.values import examine_table
from metalib.noisy import quadratic_rate
from metalib.problems import PROBLEMS, NoisyQuadratic
from metalib.train import Run

# 8.1: the answer's rate is tried, a little below and a little above it, on losses that have these curvatures.

WRONG_EDGES = (
    (lambda h: 1 / h.max(), "That rate finishes the steepest direction in one step; a larger one still shrinks it"),
    (lambda h: 2 / h.mean(), "The mean hides the steepest direction, and that one grows"),
    (lambda h: 2 / h.min(), "The flattest direction would bear it, the steepest does not"),
    (lambda h: 2 * h.max(), "A larger curvature makes larger steps, so it bears a smaller rate"),
    (lambda h: 2 / h.sum(), "Curvatures do not add up: each direction has a step of its own"),
    (lambda h: 2 / (h.min() + h.max()), "That is the fastest common rate, not the largest stable one"),
    (lambda h: 2 / h[0], "The first is only one of the directions, and they come in no order"),
    (lambda h: -2 / h.max(), "With a negative rate descent walks up the loss"),
)


def bowl(*curvatures: float):
    h = torch.tensor(curvatures, dtype=torch.float64)
    return f"curvatures {', '.join(f'{each:g}' for each in curvatures)}", h, lambda w: (h * w**2).sum() / 2


@lru_cache
def fitted_network():
    """A tanh network at weights that fit its data exactly: curvatures and loss, moved so that these weights are 0."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, 3, dtype=torch.float64, generator=generator)
    fit = 0.5 * torch.randn(16, dtype=torch.float64, generator=generator)

    def output(w):
        return torch.tanh(x @ w[:12].view(3, 4)) @ w[12:]

    def loss(w):
        return ((output(fit + w) - output(fit)) ** 2).mean()

    hessian = torch.autograd.functional.hessian(loss, torch.zeros(16, dtype=torch.float64))
    return "the network", torch.linalg.eigvalsh(hessian).clamp(min=1e-6), loss


def grows(loss: Callable[[Tensor], Tensor], size: int, rate: float) -> bool:
    """Whether 200 steps from near the minimum end further away from it than they began."""
    w = torch.full((size,), 1e-6, dtype=torch.float64)
    start = w.norm()
    for _ in range(200):
        w = w.detach().requires_grad_()
        w = w - rate * torch.autograd.grad(loss(w), w)[0]
    return not w.norm() < start  # nan grows


@exercise("8.1", "Where is the edge?", minutes=4)
def where_is_the_edge(answer: Callable) -> Finding:
    seen, known = [], WRONG_EDGES
    for name, h, loss in (bowl(3.0, 0.06, 1.5), bowl(2.0, 0.5, 4.0, 1.0), fitted_network()):
        found = answer(h.clone())
        if not isinstance(found, Real | Tensor) or torch.as_tensor(found).dim():
            what = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            return Finding(False, f"Your function returned {what}: return one number, all directions share it.", seen)
        rate = found.item() if isinstance(found, Tensor) else float(found)
        if rate == 0 or not abs(rate) < torch.inf:
            return Finding(False, f"It returned {rate:g}: {'then nothing moves' if rate == 0 else 'no rate'}.", seen)
        below, above = (grows(loss, len(h), rate * factor) for factor in (0.98, 1.02))
        words = ["grows" if it else "shrinks" for it in (below, above)]
        seen.append(f"{name}: yours {rate:.4g}; 2% below it the distance {words[0]}, 2% above it {words[1]}")
        known = [(look, why) for look, why in known if abs(look(h) - rate) < 1e-6 * abs(rate)]
        if below or not above:
            where = "Beyond the edge" if below else "Not yet at the edge"
            return Finding(False, ". ".join([f"{where} for {name}", *(why for _, why in known[:1]), ""]).strip(), seen)
    return Finding(True, "Below it all directions shrink, above it one grows.", seen)


# 8.3: what is learned for 200 steps by looking K ahead. "near" starts with the steep direction at its noise already.

STARTS = {"far": (1.0, 1.0), "near": (0.05, 1.0)}
LONG = 200
FAR = "from far away one step gains most by finishing the steep direction, whatever the noise will do later."
NEAR = "the steep direction has nothing left but noise, and within one step only a smaller rate lowers the loss."
AHEAD = "fifty steps are enough to see the flat direction fall, and fewer than 200, so they must be larger ones."
ENDS = "the last window begins when the steep direction is at its noise, and what it can still lower is that."


def restarted(problem: NoisyQuadratic, K: int) -> float:
    return problem.best_rate(K)


def online(problem: NoisyQuadratic, K: int) -> float:
    """The rate of the last of the windows of K steps, each with the best rate from where the one before it ended."""
    squares = [start**2 for start in problem.starts]
    for _ in range(LONG // K):
        starts = tuple(square**0.5 for square in squares)
        rate = quadratic_rate(K, problem.curvatures, starts, problem.noise)
        for _ in range(K):
            moved = zip(squares, problem.curvatures, strict=True)
            squares = [(1 - rate * h) ** 2 * square + rate**2 * problem.noise**2 * h for square, h in moved]
    return rate


@exercise("8.3", "Too small or too large?", minutes=6)
def too_small_or_too_large(answer: dict) -> Finding:
    truth, because = {}, {}
    for name, starts in STARTS.items():
        problem = NoisyQuadratic(starts=starts)
        for K in (1, 50):
            short = NEAR if name == "near" else FAR
            for way, why in ((restarted, short if K == 1 else AHEAD), (online, ENDS)):
                cell = (way.__name__, name, K)
                truth[cell] = "above" if way(problem, K) > problem.best_rate(LONG) else "below"
                because[cell] = why
    return examine_table(answer, truth, because, ("above", "below"))


@goal(
    "08",
    "on the noisy quadratic, a run that restarts and whose rate rises above 0.57; and a run that carries its weights "
    "over, for 200 inner steps in all, and whose rate rises above 0.38 but ends below 0.25",
)
def both_mistakes(runs: list[Run]) -> str:
    large = small = ""
    for run in runs:
        K, rates = run.settings.inner_steps, [record.rates.get("rate", 0.0) for record in run.records]
        plain = (run.settings.problem, run.settings.version) == ("noisy quadratic", "functional")
        if not plain or run.error or len(rates) < 10:
            continue
        steps = K * len(rates) if run.settings.carry else LONG
        best, end = PROBLEMS["noisy quadratic"].best_rate(steps), sum(rates[-5:]) / 5
        if run.settings.carry and end < best / 1.5 and max(rates) > best:
            small = f"with weights carried over K = {K} ended at {end:.2f}, and {best:.2f} is best for {steps} steps"
        if not run.settings.carry and end > 1.5 * best > min(rates):
            large = f"Restarted, K = {K} learned {end:.2f}; {{}}."
    return large.format(small) if large and small else ""
