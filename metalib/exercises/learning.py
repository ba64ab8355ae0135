"""The check of an outer loop: by the referee, by the way that the learned number takes, and by what is reported.

An outer loop hands its gradient to an optimiser. So the check gives it an optimiser that writes down what it sees.
With a step size of zero nothing moves: then every outer step has the same outer loss, whose true slope the referee
knows, and gradients that add up from step to step show.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import cycle

import torch
from torch import Tensor
from torch.nn import functional as F

from metalib.exercises.checking import Finding
from metalib.exercises.lookalikes import LOOKALIKES, descend
from metalib.exercises.loops import STEPS, Case, examine_cases, near
from metalib.exercises.modules import consistent, flat, flat_loss
from metalib.exercises.watching import Way, batches, classifier, watch
from metalib.problems import Batch
from metalib.rates import Meta

START = math.log(0.5)  # of log_alpha
META_RATE = 1.0


def outer_loss(
    meta: Meta, K: int, run=descend, last: Batch | None = None, exp=torch.exp, again: bool = False
) -> Tensor:
    """The outer loss as it should be; or after another `run`, on another batch, with another way to the rate, or when
    the inner loop is run `again` from where it ended."""
    net, (train, held_out) = classifier(), batches(K)
    losses = cycle(partial(flat_loss, net, F.cross_entropy, batch) for batch in train)
    w = flat(net)
    for _ in range(1 + again):
        w = run(w.detach().requires_grad_(), exp(meta["log_alpha"]), K, lambda w: next(losses)(w))
    return flat_loss(net, F.cross_entropy, last or held_out, w)


def _lookalikes(K: int) -> dict[str, Callable[[Meta], Tensor]]:
    """The second outer step, as it is when something is wrong."""
    loss = partial(outer_loss, K=K)

    def accumulated(meta):
        value = loss(meta)
        return 2 * value - value.detach()

    train, held_out = batches(K)
    return {kind: partial(loss, run=run) for kind, run in LOOKALIKES.items()} | {
        "accumulated": accumulated,
        "last training batch": partial(loss, last=train[-1]),
        "per sample": lambda meta: loss(meta) / len(held_out.y),
        "carried": partial(loss, again=True),
        "no exp": partial(loss, exp=lambda number: number),
    }


REASONS = {
    "accumulated": "it is the sum of all gradients so far: the gradient of the outer step before is never cleared",
    "last training batch": "the outer loss is taken on the last training batch, not on the held-out samples",
    "per sample": "the outer loss is divided by the number of samples, but cross_entropy is a mean already",
    "carried": "the second outer step starts from the weights that the first one ended with",
    "no exp": "the rate is log_alpha itself, and not its exp()",
}


DIVIDED = {
    "samples": "yours is ten times smaller: a sum over batches was divided by the number of samples",
    "nothing": "yours is the sum over the batches",
    "else": "yours is another number",
}


def examine_learning(answer: Callable) -> Finding:
    """The finding on `answer(net, log_alpha, optimiser, train, held_out, outer_steps)`, an outer loop."""

    def claim(meta, K):
        """The second outer loss, with the gradient that the optimiser saw as its history."""
        way = watch(answer, meta["log_alpha"].item(), K, 2, meta_rate=0.0)
        loss, seen = torch.tensor(way.said[-1][0], dtype=torch.float64), way.gradients[-1]
        return loss if seen is None else loss + seen * (meta["log_alpha"] - meta["log_alpha"].detach())

    with suppress(RuntimeError):  # the cases raise it again, and tell why
        watch(answer, START, STEPS[-1], 2, meta_rate=0.0)  # step() in the inner loop is what it should be at one step
    meta = {"log_alpha": torch.tensor(START, dtype=torch.float64)}
    cases = [
        Case("second outer step", K, partial(claim, K=K), meta, partial(outer_loss, K=K), _lookalikes(K)) for K in STEPS
    ]
    finding = examine_cases(consistent(cases), REASONS)
    for K in STEPS if finding.solved else []:
        if why := _elsewhere(watch(answer, START, K, 3, META_RATE), K):
            return Finding(False, why, finding.seen)
    return finding


def _elsewhere(way: Way, K: int) -> str:
    """Why what is yielded, or the way of log_alpha, is not that of the right outer loop; "" if it is."""
    number, samples = START, sum(len(batch.y) for batch in batches(K)[0])
    for step, ((_, average), mine) in enumerate(zip(way.said, way.numbers[1:], strict=True), start=1):
        losses, slope = _outer_step(number, K)
        number -= META_RATE * slope
        if not near(average, sum(losses) / K):
            kinds = {"samples": sum(losses) / samples, "nothing": sum(losses)}
            how = DIVIDED[next((kind for kind, wrong in kinds.items() if near(average, wrong)), "else")]
            return f"The gradients are right. At K = {K} the average inner loss is {sum(losses) / K:.3g}, and {how}."
        if not near(mine, number):
            return (
                f"The gradients are right, but something else than the optimiser moves log_alpha: at K = {K} it is "
                f"{mine:.4g} after outer step {step}, and {number:.4g} if only step() moves it."
            )
    return ""


def _outer_step(number: float, K: int) -> tuple[list[float], float]:
    """(the inner losses, the slope of the outer loss) at this log_alpha."""
    losses, log_alpha = [], torch.tensor(number, dtype=torch.float64, requires_grad=True)

    def noting(w, rate, K, loss):
        def noted(w):
            losses.append(loss(w))
            return losses[-1]

        return descend(w, rate, K, noted)

    (slope,) = torch.autograd.grad(outer_loss({"log_alpha": log_alpha}, K, noting), log_alpha)
    return [loss.item() for loss in losses], slope.item()
