"""Notebook 00, its second exercise: a rate that is learned for points which were held out."""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.exercises.checking import Finding, exercise
from metalib.exercises.lookalikes import Loss, descend
from metalib.exercises.loops import STEPS, raised
from metalib.exercises.slopes import number
from metalib.trial import leaves_of

START_RATE = 0.05
CLOSE = 0.05  # what Adam's last steps still move


class HeldOut(NamedTuple):
    """A start, the loss on few noisy points to train on, and the loss on many that are held out."""

    where: str
    start: Tensor
    train: Loss
    held_out: Loss


@cache
def problems() -> list[HeldOut]:
    """One weight that fits a line to five noisy points, and a 3-4-1 network with tanh units on eight."""

    def line(x, y):
        return lambda w: ((w * x - y) ** 2).mean()

    def network(x, y):
        return lambda w: ((torch.tanh(x @ w[:12].view(3, 4)) @ w[12:] - y) ** 2).mean()

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    generator = torch.Generator().manual_seed(5)
    x, noise, held_x, held_noise = draw(5), draw(5), draw(40), draw(40)
    one = torch.tensor(1.0, dtype=torch.float64)
    first = HeldOut("one weight", one, line(x, 2 * x + noise), line(held_x, 2 * held_x + held_noise))
    generator = torch.Generator().manual_seed(1)
    x, noise, held_x, start = draw(8, 3), draw(8), draw(40, 3), 0.5 * draw(16)
    y, held_y = x.sin().sum(1) + noise, held_x.sin().sum(1)
    return [first, HeldOut("network", start, network(x, y), network(held_x, held_y))]


@cache
def best_rate(start: Tensor, train: Loss, outer: Loss, K: int) -> float:
    """By search: the best of 41 rates from 0.01 to 10, then smaller and smaller steps to either side of it."""

    def after(rate: float) -> float:
        w = start
        for _ in range(K):
            w = descend(w.clone().requires_grad_(), rate, 1, train, create_graph=False).detach()
        return outer(w).item()

    rate, step = min((10 ** (i * 3 / 40 - 2) for i in range(41)), key=after), 1.1
    while step > 1.001:
        better = min(rate, rate * step, rate / step, key=after)
        rate, step = better, step**0.5 if better == rate else step
    return rate


class Watched:
    """A loss that remembers at which weights it was asked, and how many leaves the graph of the first of these had."""

    def __init__(self, loss: Loss):
        self.loss, self.asked, self.leaves = loss, [], 0

    def __call__(self, w: Tensor) -> Tensor:
        self.leaves = self.leaves if self.asked else _leaves(w)
        self.asked.append(w.detach().clone())
        return self.loss(w)

    def times_at(self, start: Tensor) -> int:
        return sum(torch.equal(w, start) for w in self.asked)


def _leaves(w: Tensor) -> int:
    """How many leaves a tensor was computed from: two after an inner step, the first weights and the rate."""
    return len({id(leaf) for leaf in leaves_of(w)})


@exercise("0.2", "For points that were held out", minutes=7)
def for_held_out_points(answer: Callable) -> Finding:
    seen = []
    for problem in problems():
        for K in STEPS:
            train, held_out = Watched(problem.train), Watched(problem.held_out)
            try:
                value = answer(problem.start.clone(), K, train, held_out, START_RATE)
            except RuntimeError as error:
                return Finding(False, f"It raises {raised(error, RAISED)}", seen)
            rate, best = number(value), best_rate(problem.start, problem.train, problem.held_out, K)
            if rate is None:
                return Finding(False, "Your function returned nothing that is a number: return the rate.", seen)
            seen.append(f"K = {K}, {problem.where}: learned {rate:.3g}, best by search {best:.3g}")
            if not abs(rate / best - 1) < CLOSE:  # true of nan as well
                return Finding(False, _why(problem, K, rate, best, train, held_out), seen)
    return Finding(True, "Within a part in twenty of the best rate, at one, two and five steps.", seen)


RAISED = {
    "backward through the graph a second time": "an outer step walks back into the graph of the one before: let the "
    "weights start anew in each.",
    "does not require grad": "a loss has no graph to go back through.",
}


def _why(problem: HeldOut, K: int, rate: float, best: float, train: Watched, held_out: Watched) -> str:
    """What shows in the rate alone comes first, then what shows in the calls."""
    start, outer_steps = problem.start, len(held_out.asked)
    if not train.asked and not held_out.asked:
        return "Neither loss is ever called: not one outer step was taken."
    if not math.isfinite(rate):
        return f"The rate is {rate}: it has left all bounds on the way."
    if rate <= 0:
        if abs(rate - math.log(best)) < CLOSE:
            return LOGARITHM
        return f"The rate is {rate:.2g}, not positive: learn its logarithm, and it stays positive whatever happens."
    if _near(rate, best_rate(start, problem.train, problem.train, K)):
        return "This is the best rate for the training points: the outer loss is to be that of the held-out ones."
    if not held_out.asked:
        return "held_out is never called" + ", and the rate comes back as it went in" * _unmoved(rate) + "."
    if held_out.times_at(start) == outer_steps:
        return "held_out is called with the weights from before the inner steps: these do not depend on the rate."
    if train.times_at(start) < outer_steps:
        return "The weights do not start anew: only some outer steps begin at w0."
    if _unmoved(rate):
        return UNMOVED + (CUT if held_out.leaves < 2 else CLEARED)
    if rate < START_RATE and problem.train(held_out.asked[0]) > problem.train(start):
        return "The inner loop walks up its loss, so no rate is small enough: the sign of the update is wrong."
    return _other_program(problem, K, rate, best, outer_steps)


def _unmoved(rate: float) -> bool:
    return _near(rate, START_RATE, 1e-5)


UNMOVED = "The outer loss is computed, but the rate comes back as it went in: "
CUT = "the graph of the weights that held_out is given does not lead back to it."
CLEARED = "the optimiser finds no gradient at its step. The order is: clear, backward, step."


def _other_program(problem: HeldOut, K: int, rate: float, best: float, outer_steps: int) -> str:
    if outer_steps < 30 and min(START_RATE, best) <= rate <= max(START_RATE, best):
        return f"After {outer_steps} outer steps the rate is on its way, but not there."
    for steps in {1, K - 1, K + 1} - {0, K}:
        if _near(rate, best_rate(problem.start, problem.train, problem.held_out, steps), 0.02):
            return f"This is the best rate for {steps} inner step{'s' * (steps > 1)}, where K is {K}."
    as_it_should_be = learn(problem, K, outer_steps)  # and only not yet there
    for why, fault in PROGRAMS.items():
        if _near(rate, learn(problem, K, outer_steps, **fault), 0.01) and not _near(rate, as_it_should_be, 0.01):
            return why
    if (rate - START_RATE) * (best - START_RATE) < 0:
        return "The rate has moved away from the best one: the outer loop walks up the outer loss."
    if abs(rate - math.log(best)) < CLOSE / 2:
        return LOGARITHM
    where = "past the best one" if (rate - best) * (best - START_RATE) > 0 else "on its way, but not at the best one"
    return f"After {outer_steps} outer steps the rate is {where}."


LOGARITHM = "This is the logarithm of the right rate: return the rate."


PROGRAMS = {
    "The gradients of all outer steps pile up in .grad: clear it before each backward().": {"clear": False},
    "The inner gradient is not differentiated, so from two inner steps on the rate follows a first-order gradient.": {
        "create_graph": False
    },
}


def learn(problem: HeldOut, K: int, outer_steps: int, clear: bool = True, create_graph: bool = True) -> float:
    """The program as it should be, or with one of two faults."""
    log_rate = torch.tensor(math.log(START_RATE), requires_grad=True)
    optimiser = torch.optim.Adam([log_rate], lr=0.05)
    for _ in range(outer_steps):
        w = problem.start.clone().requires_grad_()
        w = descend(w, log_rate.exp(), K, problem.train, create_graph=create_graph)
        if clear:
            optimiser.zero_grad()
        problem.held_out(w).backward()
        optimiser.step()
    return log_rate.exp().item()


def _near(a: float, b: float, rtol: float = CLOSE) -> bool:
    return abs(a / b - 1) < rtol
