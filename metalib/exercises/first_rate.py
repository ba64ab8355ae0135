"""Notebook 00: a rate that can be learned, and how far outer steps bring it."""

import math
from dataclasses import replace

import torch

from metalib.describe import best_rate, label
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import LOOKALIKES, Descend, descend, models
from metalib.exercises.loops import REASONS, examine_loop, weights
from metalib.settings import Settings
from metalib.train import Run

LOG_REASONS = {
    "independent": "the outer loss is the same whatever the learned rate is: the update does not use it",
    "log": "the update uses the logarithm of the rate, which is negative here, so the weights walk up the loss",
    "reciprocal": "the update uses the reciprocal of the rate",
}


@exercise("0.1", "A rate that can be learned", minutes=3)
def can_be_learned(answer: Descend) -> Finding:
    """An inner loop that is given the logarithm of its rate."""
    looks = {kind: _of_log(run) for kind, run in LOOKALIKES.items()}
    looks |= {"log": descend, "reciprocal": _of_log(lambda w, rate, K, loss: descend(w, 1 / rate, K, loss))}
    finding = examine_loop(answer, math.log(0.1), _of_log(descend), looks, LOG_REASONS)
    if not finding.solved and REASONS["other loss"][1:] in finding.why and _same_at_two_rates(answer):
        return Finding(False, f"{LOG_REASONS['independent'].capitalize()}.", finding.seen)
    return finding


def _of_log(run: Descend) -> Descend:
    return lambda w, log_rate, K, loss: run(w, log_rate.exp(), K, loss)


def _same_at_two_rates(answer: Descend) -> bool:
    model, losses = models()[0], []
    for log_rate in torch.tensor([-2.0, -1.0], dtype=torch.float64):
        w = answer(model.start.clone().requires_grad_(), log_rate.clone().requires_grad_(), 1, model.inner)
        losses.append(model.outer(weights(w, model.start)).item())
    return losses[0] == losses[1]


@goal("00", "two runs of 200 outer steps that do not reach the dashed best rate: one starts below it, one above")
def not_there_yet(runs: list[Run]) -> str:
    """Only inner steps, start rate and seed may differ from the lab's own settings."""
    sides = {}
    for run in runs:
        free = {name: getattr(Settings(), name) for name in ("inner_steps", "start_rate", "seed")}
        whole = not run.error and len(run.records) == Settings().outer_steps
        if whole and replace(run.settings, **free) == Settings():
            rates = [record.rates["rate"] for record in run.records[-50:]]
            end, best = sum(rates) / len(rates), best_rate(run.settings)
            if abs(end / best - 1) > 0.1:
                sides[run.settings.start_rate > best] = f"{label(run.settings)}: {end:.2g}, best {best:.2g}"
    return "; ".join(text for _, text in sorted(sides.items())) + "." if len(sides) == 2 else ""
