"""Notebook 11: reading trajectories."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from statistics import fmean, pstdev, stdev

from torch import Tensor

from metalib.describe import best_rate, rate_names
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.values import examine_formula
from metalib.settings import Settings
from metalib.together import complete_together
from metalib.train import Run, complete

SEEDS = (0, 1, 2)
BUDGET, FEWEST_INNER, FEWEST_OUTER = 500, 4, 100
ABOVE, NEAR = 1.5, 0.15
Spread = tuple[float, float, int]


def rates_of(run: Run) -> list[float]:
    """The rates of a run, outer step by outer step; the first ones where it has several."""
    name = rate_names(run)[0]
    return [record.rates[name] for record in run.records]


@exercise("11.1", "From a goal to settings", minutes=10)
def from_a_goal(answer: Settings) -> Finding:
    if reason := _refused(answer):
        return Finding(False, reason)
    best = best_rate(answer)
    ends = {"functional": [], "first_order": []}
    for version, reached in ends.items():
        for seed in SEEDS:
            run = complete(replace(answer, version=version, seed=seed, device="cpu", dtype="float64"))
            reached.append(fmean(rates_of(run)[-50:]) / best)
    pairs = list(zip(*ends.values(), strict=True))
    seen = [f"Ends, as multiples of the best rate {best:.3f}:"]
    seen += [f"seed {seed}: functional {a:.2f}, first_order {b:.2f}" for seed, (a, b) in zip(SEEDS, pairs, strict=True)]
    why = _not_near(answer, *ends["functional"]) or _not_above(answer, *ends["first_order"])
    return Finding(
        not why,
        why or "At all three seeds the exact gradient ends near the best rate, and first order far above it.",
        seen,
    )


def _refused(answer) -> str:
    if not isinstance(answer, Settings):
        return f"You gave {type(answer).__name__}: give Settings(...)."
    for name in ("problem", "rate", "carry", "truncation"):
        if getattr(answer, name) != getattr(Settings(), name):
            return (
                f"{name} is {getattr(answer, name)!r}: leave it as it is; with another one the best rate is not known."
            )
    inner, outer = answer.inner_steps, answer.outer_steps
    if inner < FEWEST_INNER:
        return f"K is {inner}: take at least {FEWEST_INNER} inner steps."
    if outer < FEWEST_OUTER:
        return f"There are {outer} outer steps, and the last 50 are averaged: take at least {FEWEST_OUTER}."
    if inner * outer > BUDGET:
        return f"{inner} × {outer} = {inner * outer:,} inner steps are more than the budget of {BUDGET}."
    return ""


def _not_near(settings: Settings, *ends: float) -> str:
    """What is wrong with the ends of the exact gradient, "" if nothing is."""
    far = [end for end in ends if abs(end - 1) > NEAR]
    if not far:
        return ""
    if len(far) < len(ends):
        near = next(end for end in ends if end not in far)
        return f"The exact gradient ends at {near:.2f} at one seed and at {far[0]:.2f} at another: look at all three."
    if max(ends) < 1:
        return (
            "The exact gradient ends below the best rate at every seed. The seeds agree, but the rate has not arrived: "
            f"it comes from {settings.start_rate:g}, at a meta rate of {settings.meta_rate:g}."
        )
    return f"The exact gradient ends far from the best rate at every seed; it comes from {settings.start_rate:g}."


def _not_above(settings: Settings, *ends: float) -> str:
    low = [end for end in ends if end < ABOVE]
    if not low:
        return ""
    if settings.inner_steps % 2 and max(ends) < 1.2:
        return (
            "The exact gradient is near, but so is first order: at an odd K its gradient, too, changes its sign at the "
            "best rate, and it stays there."
        )
    if len(low) < len(ends):
        return f"First order ends at {max(ends):.2f} at one seed, but only at {min(ends):.2f} at another: an anecdote."
    low = f"First order ends at {max(ends):.2f} × the best rate at most"
    if settings.start_rate < 1 and settings.inner_steps % 2 == 0:
        return f"{low}: near the best rate its gradient is small, and it has not got past it yet."
    return f"{low}: it is not far above at any seed."


@exercise("11.2", "A mean, a spread, and how many", minutes=8)
def spread_over_seeds(answer: Callable[[list[Run]], Spread]) -> Finding:
    tables = [(list(runs),) for runs in _tables()]
    given = answer(list(*tables[0]))
    if not isinstance(given, list | tuple | Tensor) or len(given) != 3:
        return Finding(False, "Return three numbers: mean, standard deviation, and how many runs they stand on.")
    return examine_formula(lambda runs: answer(list(runs)), spread, tables, LOOKALIKES)


def finished(run: Run) -> bool:
    return not run.error and len(run.records) == run.settings.outer_steps


def spread(runs: list[Run], keep=finished, part=slice(-20, None), deviation=stdev) -> Spread:
    """(mean, standard deviation, how many) of the kept runs' ends, each the mean of that part of the run's rates."""
    ends = [fmean(rates_of(run)[part]) for run in runs if keep(run)]
    return fmean(ends), deviation(ends), len(ends)


@lru_cache
def _tables() -> tuple[tuple[Run, ...], ...]:
    """Four lists of runs: all finished; one that diverged among them; one stopped; one that diverged at its end."""
    base = Settings(inner_steps=20, carry=True, start_rate=1.85, outer_steps=30, dtype="float64")
    runs = complete_together([replace(base, seed=seed) for seed in (2, 3, 4, 5, 6, 7, 9)])
    diverged = next(run for run in runs if run.error)
    first, *others, last = [run for run in runs if finished(run)]
    stopped = Run(last.settings, last.records[:25])
    at_its_end = Run(replace(diverged.settings, outer_steps=len(diverged.records)), diverged.records, diverged.error)
    return (first, *others), (first, diverged, *others), (stopped, first, *others), (first, *others, at_its_end)


def _over_outer_steps(runs: list[Run]) -> Spread:
    kept = [rates_of(run)[-20:] for run in runs if finished(run)]
    return fmean(map(fmean, kept)), fmean(map(stdev, kept)), len(kept)


def _pooled(runs: list[Run]) -> Spread:
    kept = [rates_of(run)[-20:] for run in runs if finished(run)]
    rates = [rate for part in kept for rate in part]
    return fmean(rates), stdev(rates), len(kept)


WRONG_ENDS = {
    "You average over all outer steps, the way up included: a run ends with its last ones.": {"part": slice(None)},
    "You take the rate that the run starts with.": {"part": slice(0, 1)},
    "You take the last rate alone, which jumps from step to step: average the last 20.": {"part": slice(-1, None)},
    "You divide by n: that is the spread of these runs, not an estimate for other seeds.": {"deviation": pstdev},
    "That is the variance: its root is in the unit of a rate.": {"deviation": lambda ends: stdev(ends) ** 2},
    "That is the doubt about the mean, not the spread.": {"deviation": lambda ends: stdev(ends) / len(ends) ** 0.5},
    "A run that diverged is counted: it ended with no rate.": {},
}
LOOKALIKES: dict[str, Callable[[list[Run]], Spread]] = {
    **{why: partial(spread, keep=lambda run: True, **options) for why, options in WRONG_ENDS.items()},
    "That is the spread over the outer steps of one run: ask how the runs differ.": _over_outer_steps,
    "You throw all rates together, but a run's rates are no independent draws: average each run first.": _pooled,
    "How many is the number of runs that the mean stands on, not of all.": lambda runs: (*spread(runs)[:2], len(runs)),
    "A run that was stopped is counted: it has not ended.": partial(spread, keep=lambda run: not run.error),
    "A run that diverged in its last outer step is counted.": partial(
        spread, keep=lambda run: len(run.records) == run.settings.outer_steps
    ),
}


@goal(
    "11",
    "two runs of a right version that differ in the start rate alone, each moving by less than 10% in its last 50 "
    "outer steps, which end more than a factor of two apart (at least 100 outer steps, a meta rate of at least 0.01)",
)
def flat_but_apart(runs: list[Run]) -> str:
    flat = [run for run in runs if _is_flat(run)]
    for place, one in enumerate(flat):
        for other in flat[:place]:
            low, high = sorted((rates_of(run)[-1], run.settings.start_rate) for run in (one, other))
            alike = one.settings == replace(other.settings, start_rate=one.settings.start_rate)
            if alike and high[0] > 2 * low[0]:
                (one_end, one_start), (other_end, other_start) = low, high
                ends = f"from {one_start:g} the rate ends at {one_end:.3g}, from {other_start:g} at {other_end:.3g}"
                return f"Both are flat: {ends}. So flat does not mean arrived."
    return ""


def _is_flat(run: Run) -> bool:
    """A flat line that a right gradient and a meta rate that can move the rate have made."""
    settings = run.settings
    if run.error or len(run.records) < 100 or settings.meta_rate < 0.01:
        return False
    if settings.version not in ("functional", "buffer_rebind"):
        return False
    before, after = run.records[-51].rates, run.records[-1].rates
    return all(abs(after[name] / rate - 1) < 0.1 for name, rate in before.items())
