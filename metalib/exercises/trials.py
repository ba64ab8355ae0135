"""What a reader's own referee is tried on: steps with every verdict, at one, two and five inner steps."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.exercises.lookalikes import LOOKALIKES, Descend, Model, descend, models
from metalib.exercises.loops import STEPS
from metalib.referee import referee
from metalib.report import short

VERDICTS = ("cut", "wrong", "independent", "right")


class Trial(NamedTuple):
    """A step, its outer loss a function of the rate alone, and the verdict that it deserves at `rate`."""

    kind: str
    where: str
    step: Callable[[Tensor], Tensor]
    verdict: str
    rate: float = 0.1


def written_through_data(w, rate, K, loss):
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w.data -= rate * grad
    return w


def without_graph(w, rate, K, loss):
    return descend(w, rate, K, loss).detach()


def filled_with_zeros(w, rate, K, loss):
    return without_graph(w, rate, K, loss) + (rate - rate)


# {kind: (loop, verdict at one step, verdict at more)}; the tests hold each verdict to that of the workbook's referee
ON_BOTH = {
    "a right loop": (descend, "right", "right"),
    "create_graph forgotten": (LOOKALIKES["first order"], "right", "wrong"),
}
ON_THE_NETWORK = {
    "written through .data": (written_through_data, "cut", "cut"),
    "weights detached in each step": (LOOKALIKES["weights cut"], "right", "wrong"),
}
AT_ONE_STEP = {
    "no graph at all": (without_graph, "cut", ""),
    "a gradient filled with zeros": (filled_with_zeros, "cut", ""),
    "a rate that is not used": (lambda w, rate, K, loss: descend(w, torch.tensor(0.2), K, loss), "independent", ""),
    "a rate minus itself": (lambda w, rate, K, loss: w + (rate - rate), "independent", ""),
}
MATTERS = {
    "right": "A right gradient that is called anything else sends you looking for a fault that is not there.",
    "cut": "The loss would change with another rate, but an optimiser that gets this gradient never moves it.",
    "wrong": "An optimiser follows this number without complaint, and learns another rate.",
    "independent": "No line has lost a gradient here: every rate gives the same loss, so there is none to lose.",
    "at its best": "A slope of zero can be the truth: it is what a rate looks like once it has been learned.",
}


@cache
def trials() -> list[Trial]:
    """Every trial, those of one step first."""
    weight, network = models()
    listed = []
    for K in STEPS:
        listed += [_trial(kind, *loop, model, K) for kind, loop in ON_BOTH.items() for model in (weight, network)]
        listed += [_trial(kind, *loop, network, K) for kind, loop in ON_THE_NETWORK.items()]
        if K == 1:
            listed += [_trial(kind, *loop, network, K) for kind, loop in AT_ONE_STEP.items()]
    small = _trial("create_graph forgotten", *ON_BOTH["create_graph forgotten"], network, 2)
    small = small._replace(where=f"{small.where}, rate 0.005", rate=0.005)
    return [*listed, small, Trial("a rate at its best", "K = 2, network", _at_its_best(network), "right")]


def _trial(kind: str, loop: Descend, at_one: str, at_more: str, model: Model, K: int) -> Trial:
    def step(rate):
        return model.outer(loop(model.start.clone().requires_grad_(), rate, K, model.inner))

    return Trial(kind, f"K = {K}, {model.name}", step, at_one if K == 1 else at_more)


def _at_its_best(model: Model, best: float = 0.1) -> Callable[[Tensor], Tensor]:
    def moved(rate):
        return descend(model.start.clone().requires_grad_(), rate, 2, model.inner)

    aim = moved(torch.tensor(best, dtype=torch.float64)).detach()
    return lambda rate: 1 + ((moved(rate) - aim) ** 2).sum()


def ask(answer: Callable, trial: Trial, asked: list[Tensor]):
    """What the reader's referee says, or the exception that it raises; `asked` gets the rates that it looks at."""

    def step(rate):
        rate = rate if isinstance(rate, Tensor) else torch.tensor(rate, dtype=torch.float64)
        asked.append(rate.detach().clone())
        return trial.step(rate)

    try:
        return answer(step, torch.tensor(trial.rate, dtype=torch.float64, requires_grad=True))
    except Exception as error:
        return error


def miss(trial: Trial, said, asked: list[Tensor], score: str) -> str:
    """Why `said` is not the verdict on this trial, in one to three sentences."""
    report = referee(lambda meta: trial.step(meta["rate"]), {"rate": torch.tensor(trial.rate, dtype=torch.float64)})
    where = f'On "{trial.kind}", {trial.where},'
    claimed, slope = report.claimed["rate"], report.expected["rate"].item()
    differences = f"{slope:.6g}" if abs(slope) > 1e-9 else "0"  # where it is zero, what is left of it is rounding
    truth = f'"{trial.verdict}": autograd {short(claimed)}, finite differences {differences}'
    if isinstance(said, Exception):
        message = str(said).partition("\n")[0].partition(". Hint")[0].rstrip(".")
        return f"{where} your function raises {type(said).__name__}: {message}. The verdict is {truth}."
    if not isinstance(said, str) or said not in VERDICTS:
        return f"{where} your function returns {said!r}: return one of {', '.join(map(repr, VERDICTS))}."
    why = _own_fault(trial, slope, asked)
    why = why or MATTERS["at its best" if trial.kind == "a rate at its best" else trial.verdict]
    return f'{score} {where} you say "{said}", it is {truth}. {why}'


def _own_fault(trial: Trial, truth: float, asked: list[Tensor]) -> str:
    """What is wrong with the reader's own finite differences, or ""."""
    here = trial.rate, torch.tensor(trial.rate, dtype=torch.float32).item()
    others = {rate.item(): rate.dtype for rate in asked if rate.item() not in here}
    if not others:
        return "Your function never looks at the outer loss at another rate, so it cannot know that."
    width, (dtype, *_) = max(abs(rate - trial.rate) for rate in others), others.values()
    if torch.finfo(dtype).eps * trial.rate > 1e-4 * width:
        name = str(dtype).removeprefix("torch.")
        return f"Your rates lie {width:.0e} apart, too near for {name}: it rounds them, and the quotient with them."
    high, low = max(others), min(others) if len(others) > 1 else trial.rate
    top, bottom = (trial.step(torch.tensor(rate, dtype=torch.float64)).item() for rate in (high, low))
    slope = (top - bottom) / (high - low)
    if len(others) > 2 or abs(slope - truth) <= 1e-3 * abs(truth) + 1e-4:
        return ""
    sides = "on both sides" if low < trial.rate < high else "on one side"
    return f"Your difference, {sides} and {width:.0e} wide, gives {slope:.6g}: the outer loss is curved."
