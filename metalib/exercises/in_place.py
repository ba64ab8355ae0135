"""Notebook 02: updating in place."""

import torch

from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import Descend, models
from metalib.exercises.loops import STEPS, examine_loop
from metalib.exercises.values import examine_table
from metalib.referee import referee
from metalib.train import Run


@exercise("2.1", "One clone too few", minutes=5)
def one_clone(answer: Descend) -> Finding:
    return examine_loop(
        answer,
        reasons={
            "cut": "the outer loss changes with the rate, but no gradient arrives: a copy that is detached, or a write "
            "under no_grad, has no history",
        },
    )


def write_to_a_copy_of_the_start(w, rate, K, loss):
    w = w.clone()
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w -= rate * grad
    return w


def write_to_a_copy_in_each_step(w, rate, K, loss):
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w = w.clone()
        w -= rate * grad
    return w


LOOPS = {"copy once": write_to_a_copy_of_the_start, "copy each step": write_to_a_copy_in_each_step}
SAVED = "On the network the second gradient passes through weights that were saved, and the write spoils them."
NOT_SAVED = "What autograd saved is not what is written to, so nothing is spoiled."
FIRST = "One step's gradient is taken at the start, and the way back to the rate need not pass through it."


@exercise("2.2", "Who has saved it?", minutes=6)
def who_saved(answer: dict) -> Finding:
    truth, because = {}, {}
    for name, loop in LOOPS.items():
        for model in models():
            for K in STEPS:
                cell = (name, model.name, K)
                truth[cell] = _verdict(loop, model, K)
                spoiled = truth[cell] == "raises"
                because[cell] = SAVED if spoiled else FIRST if name == "copy once" and K == 1 else NOT_SAVED
    return examine_table(answer, truth, because, ("raises", "cut", "wrong", "right"))


def _verdict(loop: Descend, model, K: int) -> str:
    def step(meta):
        return model.outer(loop(model.start.clone().requires_grad_(), meta["rate"], K, model.inner))

    return referee(step, {"rate": torch.tensor(0.1)}).verdict


@goal(
    "02", "a version that runs although its rate stays flat; and in_place_clone on the classifier, raising and running"
)
def both_faces(runs: list[Run]) -> str:
    flat = [run for run in runs if run.records and not run.error and _silent(run)]
    clones = [run for run in runs if (run.settings.version, run.settings.problem) == ("in_place_clone", "classifier")]
    raising = [run.settings.inner_steps for run in clones if run.error]
    running = [run.settings.inner_steps for run in clones if run.records and not run.error]
    if not (flat and raising and running):
        return ""
    steps = f"in_place_clone runs at K = {running[0]} and raises at K = {raising[0]}."
    return f"No gradient reaches the rate of {flat[0].settings.version}; {steps}"


def _silent(run: Run) -> bool:
    return all(gradient is None for gradient in run.records[-1].meta_gradient.values())
