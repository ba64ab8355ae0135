"""Notebook 07: a derivative carried forward, a walk back along stored weights, and a loop cut short."""

from collections.abc import Callable

import torch
from torch import Tensor

from metalib.exercises.by_hand import Place, examine_slopes, frugal, places
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import Loss
from metalib.exercises.loops import weights
from metalib.exercises.memory_faults import CARRIED, CUT_SHORT, MOMENTUM, WALKED, by_rate, misplaced, slope_of
from metalib.optimisers import SGD
from metalib.report import Undecided
from metalib.train import Run

Carry = Callable[[Tensor, float, int, Loss], tuple[Tensor, Tensor]]
WalkBack = Callable[[list[Tensor], float, Loss, Loss], float]
Truncated = Callable[[Tensor, Tensor, int, int, Loss], Tensor]
NO_DERIVATIVE = "each line for a derivative should be the derivative of another line here, and one is not"
NO_CHAIN = "the two lines are the chain rule for one step, and one of them is not right"
NOT_THE_LAST = "it is neither all steps that are differentiated, nor just the last ones"


@exercise("7.1", "The recursion with momentum", minutes=10)
def with_momentum(answer: Carry) -> Finding:
    def slope(place: Place) -> float:
        w, v = _pair(answer(place.start(), place.rate, place.K, place.inner), place.model.start)
        if why := misplaced(w, place):
            raise Undecided(f"At {place}, the weights are not those of descent with momentum: {why}")
        return slope_of(w, v, place)

    def truth(place: Place) -> float:
        return place.engine("reverse", optimiser=SGD(momentum=MOMENTUM))

    where = places((K, None) for K in (1, 2, 5, 20))
    return frugal(examine_slopes(where, slope, truth, CARRIED, NO_DERIVATIVE), slope)


def _pair(found, start: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(found, tuple | list) or len(found) != 2:
        what = f"{len(found)} things" if isinstance(found, tuple | list) else type(found).__name__
        raise Undecided(f"your function returned {what}: return two tensors, the weights and their derivative v")
    w, v = found
    if not isinstance(v, Tensor) or v.shape != start.shape:
        what = f"a tensor of shape {tuple(v.shape)}" if isinstance(v, Tensor) else type(v).__name__
        raise Undecided(f"your v is {what}: it holds one number for each weight, in the shape {tuple(start.shape)}")
    return weights(w, start).detach(), v.detach()


@exercise("7.2", "Walk back", minutes=10)
def walk_back(answer: WalkBack) -> Finding:
    def slope(place: Place) -> float:
        found = answer(place.path(), place.rate, place.inner, place.model.outer)
        if found is None or (isinstance(found, Tensor) and found.numel() != 1):
            what = "None" if found is None else f"a tensor of shape {tuple(found.shape)}"
            raise Undecided(f"your function returned {what}: return the slope, one number")
        return found.item() if isinstance(found, Tensor) else float(found)

    def truth(place: Place) -> float:
        return place.engine("reverse")

    where = places((K, None) for K in (1, 2, 5))
    return frugal(examine_slopes(where, slope, truth, WALKED, NO_CHAIN), slope)


@exercise("7.3", "Only the last steps", minutes=5)
def only_the_last_steps(answer: Truncated) -> Finding:
    def slope(place: Place) -> float:
        rate = torch.tensor(place.rate, dtype=torch.float64, requires_grad=True)
        w = weights(answer(place.start(), rate, place.K, place.span, place.inner), place.model.start)
        if not torch.allclose(w.detach(), place.path()[-1], rtol=1e-9, atol=1e-12):
            raise Undecided(f"At {place}, the weights are not those after K steps of descent")
        if not w.requires_grad or (found := by_rate(rate, place.model.outer(w))) is None:
            raise Undecided(f"At {place}, no gradient reaches the rate: the last steps are cut off as well")
        return found.item()

    def truth(place: Place) -> float:
        return place.engine("truncated")

    where = places([(1, 1), (2, 1), (2, 2), (5, 1), (5, 2), (5, 5)])
    return frugal(examine_slopes(where, slope, truth, CUT_SHORT, NOT_THE_LAST), slope, span=2)


@goal("07", "with two steps differentiated, a learned rate below 0.2; then the same K from 0.5, coming down again")
def comes_down(runs: list[Run]) -> str:
    cut = [run for run in runs if run.records and not run.error and _cut_short(run)]
    low = {run.settings.inner_steps: _end(run) for run in cut if run.settings.start_rate < 0.2 and _end(run) < 0.2}
    high = [run for run in cut if run.settings.start_rate >= 0.5 and run.settings.inner_steps in low]
    back = [run for run in high if _end(run) < run.settings.start_rate / 2]
    if not back:
        return ""
    K, start = back[-1].settings.inner_steps, back[-1].settings.start_rate
    return f"At K = {K} the rate ends at {low[K]:.3f}; from {start:g} it comes down to {_end(back[-1]):.3f}."


def _end(run: Run) -> float:
    return run.records[-1].rates["rate"]


def _cut_short(run: Run) -> bool:
    """Two steps of more, on the classifier, with one rate for all weights."""
    settings = run.settings
    steps = (settings.problem, settings.version, settings.rate, settings.truncation)
    return steps == ("classifier", "functional", "constant", 2) and settings.inner_steps > 2
