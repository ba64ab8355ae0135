"""Answers to the exercises of notebook 11: wrong ones with what must be said of them, and right ones."""

from statistics import fmean, mean, pstdev, stdev, variance

import torch

from metalib.settings import Settings


def ends(keep=lambda run: not run.error and len(run.records) == run.settings.outer_steps, part=slice(-20, None)):
    """An answer's list: what each of the kept runs ended with."""

    def of(runs):
        return [fmean(record.rates["rate"] for record in run.records[part]) for run in runs if keep(run)]

    return of


def spread(of=ends(), deviation=stdev, count=lambda runs, kept: len(kept)):  # noqa: B008
    return lambda runs: (mean(of(runs)), deviation(of(runs)), count(runs, of(runs)))


def over_outer_steps(runs):
    kept = [[record.rates["rate"] for record in run.records[-20:]] for run in runs if not run.error]
    return mean(map(mean, kept)), mean(map(stdev, kept)), len(kept)


def pooled(runs):
    kept = [run for run in runs if not run.error]
    rates = [record.rates["rate"] for run in kept for record in run.records[-20:]]
    return mean(rates), stdev(rates), len(kept)


def by_torch(runs):
    kept = [run for run in runs if not run.error and run.records[-1].step + 1 == run.settings.outer_steps]
    rates = torch.tensor([[record.rates["rate"] for record in run.records] for run in kept], dtype=torch.float64)
    last = rates[:, -20:].mean(dim=1)
    return torch.stack([last.mean(), last.std(), torch.tensor(len(kept))])


def by_hand(runs):
    values = []
    for run in runs:
        if run.error or len(run.records) < run.settings.outer_steps:
            continue
        values.append(sum(record.rates["rate"] for record in run.records[-20:]) / 20)
    n = len(values)
    middle = sum(values) / n
    return [middle, (sum((value - middle) ** 2 for value in values) / (n - 1)) ** 0.5, n]


def first_five(runs):
    del runs[5:]
    return spread()(runs)


WRONG = {
    "11.1": [
        ("You gave NoneType", None),
        ("You gave dict", {"inner_steps": 4}),
        ("You gave function", lambda: Settings()),
        ("problem is 'classifier': leave it", Settings(problem="classifier", inner_steps=4, outer_steps=125)),
        ("carry is True: leave it", Settings(carry=True, inner_steps=4, outer_steps=125)),
        ("K is 2: take at least 4", Settings(inner_steps=2, outer_steps=300, start_rate=0.4)),
        ("There are 60 outer steps", Settings(inner_steps=10, outer_steps=60, start_rate=0.4)),
        ("4 × 200 = 800 inner steps are more than the budget", Settings(inner_steps=4, start_rate=0.4)),
        ("the rate has not arrived: it comes from 0.1", Settings(inner_steps=5, outer_steps=100)),
        (
            "far from the best rate at every seed; it comes from 2",
            Settings(inner_steps=4, outer_steps=125, start_rate=2.0, meta_rate=0.01),
        ),
        (
            "ends at 0.89 at one seed and at 0.83 at another",
            Settings(inner_steps=5, outer_steps=100, start_rate=0.25, meta_rate=0.02),
        ),
        ("changes its sign at the best rate", Settings(inner_steps=5, outer_steps=100, start_rate=0.4)),
        (
            "First order ends at 1.75 at one seed, but only at 1.26 at another",
            Settings(inner_steps=4, outer_steps=125, start_rate=0.4, meta_rate=0.01),
        ),
        (
            "First order ends at 0.97 × the best rate at most",
            Settings(inner_steps=4, outer_steps=125, start_rate=0.3, meta_rate=0.01),
        ),
        (
            "First order ends at 1.37 × the best rate at most: near",
            Settings(inner_steps=4, outer_steps=125, start_rate=0.45, meta_rate=0.005),
        ),
    ],
    "11.2": [
        ("You average over all outer steps", spread(ends(lambda run: True, slice(None)))),
        ("You average over all outer steps", spread(ends(part=slice(None)))),
        ("You take the rate that the run starts with", spread(ends(part=slice(0, 1)))),
        ("You take the last rate alone", spread(ends(part=slice(-1, None)))),
        ("You divide by n", spread(deviation=pstdev)),
        ("That is the variance", spread(deviation=variance)),
        ("the doubt about the mean", spread(deviation=lambda values: stdev(values) / len(values) ** 0.5)),
        ("the spread over the outer steps of one run", over_outer_steps),
        ("You throw all rates together", pooled),
        ("A run that diverged is counted", spread(ends(lambda run: True))),
        ("A run that was stopped is counted", spread(ends(lambda run: not run.error))),
        (
            "A run that diverged in its last outer step is counted",
            spread(ends(lambda run: len(run.records) == run.settings.outer_steps)),
        ),
        ("How many is the number of runs", spread(count=lambda runs, kept: len(runs))),
        ("right at 1, wrong at the next", first_five),
        ("Return three numbers", lambda runs: None),
        ("Return three numbers", lambda runs: spread()(runs)[0]),
        ("Return three numbers", lambda runs: spread()(runs)[:2]),
        ("not callable", (0.8, 0.05, 5)),
        ("It raises KeyError: 'seed'", lambda runs: {run.settings.seed: run for run in runs}["seed"]),
    ],
}
RIGHT = {
    "11.1": [
        Settings(inner_steps=4, outer_steps=125, start_rate=0.45, meta_rate=0.02),
        Settings(inner_steps=4, outer_steps=125, start_rate=0.5, meta_rate=0.01, seed=7, version="data_write"),
        Settings(inner_steps=4, outer_steps=100, start_rate=0.4, meta_rate=0.05, dtype="float64"),
    ],
    "11.2": [spread(), by_torch, by_hand],
}
