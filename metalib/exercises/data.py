"""Notebook 03: `.data`, its cousins, and a referee of the reader's own."""

from collections.abc import Callable

import torch

from metalib.describe import is_cut, symptom
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import Descend, descend, models
from metalib.exercises.loops import examine_loop
from metalib.exercises.trials import ask, miss, trials
from metalib.train import Run
from metalib.versions import VERSIONS


@exercise("3.1", "Two cuts", minutes=5)
def two_cuts(answer: Descend) -> Finding:
    return examine_loop(
        answer,
        reasons={
            "cut": _what_arrives(answer),
            "weights cut": "one cut is left: the rate arrives with its history, but the weights of each step are "
            "taken over without theirs",
        },
    )


def _what_arrives(answer: Descend) -> str:
    """Of an answer through which no gradient reaches the rate: whether one reaches the first weights."""
    _, network = models()

    def for_the_start(loop):
        start, rate = network.start.clone().requires_grad_(), torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
        loss = network.outer(loop(start, rate, 2, network.inner))
        return torch.autograd.grad(loss, start, allow_unused=True)[0]

    try:
        mine = for_the_start(answer)
    except Exception:  # nothing requires grad; or the answer fails, and examine_loop says how
        mine = None
    if mine is None:
        return "the weights come back without any history: no gradient reaches the rate, nor the first weights"
    if torch.allclose(mine, for_the_start(descend), rtol=1e-6):
        return "one cut is left: the weights keep their history, but the rate loses its own before it is used"
    return (
        "no gradient reaches the rate, and the one that reaches the first weights is wrong too: the rate and the "
        "weights each lose their history, on a line of their own"
    )


@exercise("3.2", "Your own referee", minutes=12)
def own_referee(answer: Callable) -> Finding:
    if not callable(answer):
        return Finding(False, f"Your answer is {answer!r}: give the function itself.")
    counts, misses = {}, []
    for trial in trials():
        asked = []
        said = ask(answer, trial, asked)
        agrees = isinstance(said, str) and said == trial.verdict
        right, tried = counts.get(trial.kind, (0, 0))
        counts[trial.kind] = right + agrees, tried + 1
        if not agrees:
            misses.append((trial, said, asked))
    seen = [f"{kind}: {right} of {tried}" for kind, (right, tried) in counts.items()]
    total = len(trials())
    if not misses:
        return Finding(True, f"Your referee agrees with the workbook's on {total} of {total} steps.", seen)
    late = ", all those at one inner step among them" if "K = 1" not in misses[0][0].where else ""
    return Finding(False, miss(*misses[0], f"{total - len(misses)} of {total} verdicts are right{late}."), seen)


@goal("03", "every version whose line on the left stays flat, and one that learns; all with the weights carried over")
def flat_lines(runs: list[Run]) -> str:
    runs = [run for run in runs if run.settings.carry and run.records and not run.error]
    flat = {run.settings.version: run for run in runs if is_cut(run)}
    learning = [run for run in runs if not is_cut(run)]
    if not learning or {name for name in VERSIONS if symptom(name).startswith("Silent")} - set(flat):
        return ""
    ends = [f"{run.settings.version} {run.records[-1].meta_loss:.1g}" for run in (*flat.values(), learning[0])]
    return f"{len(flat)} versions stay flat, and their losses fall like any other: {', '.join(ends)} at the end."
