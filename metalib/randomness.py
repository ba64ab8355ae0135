"""Dropout and whatever else draws random numbers inside a loss: the same numbers in every mode, or a refusal.

A mode may evaluate a step's loss once (`reverse`) or twice (`checkpointed`). A loss that draws from PyTorch's global
generator would be another function the second time, and the meta-gradient that of no program at all.
"""

import threading
from contextlib import contextmanager

import torch

from metalib.problems import Weights
from metalib.versions import InnerLoss

# PyTorch's generator is one for all threads: whoever seeds it, or looks at where it stands, is alone meanwhile.
_ALONE = threading.RLock()


@contextmanager
def drawing(seed: int, weights: Weights):
    """Random numbers from this seed, on the weights' devices too; afterwards the generators are where they were.

    Threads that draw in here do so one after the other. One that draws elsewhere at the same time (its own code, or a
    loss without a generator, which is refused afterwards) takes numbers from the same one, and nothing can see it.
    """
    with _ALONE, torch.random.fork_rng({w.device for w in weights.values() if w.device.type == "cuda"}):
        torch.manual_seed(seed)
        yield


class Draws:
    """Gives each loss function a seed of its own from `generator`; without one, refuses losses that draw."""

    def __init__(self, generator: torch.Generator | None):
        if not isinstance(generator, torch.Generator | None) or generator is torch.default_generator:
            raise ValueError(
                f"generator is {generator!r}: give one of your own, such as torch.Generator().manual_seed(0)"
            )
        self.generator = generator

    def seeded(self, loss_of: InnerLoss) -> InnerLoss:
        """The loss as a function of the weights alone: each call draws the same numbers."""
        if self.generator is None:
            return loss_of
        seed = int(torch.randint(2**62, (), generator=self.generator, device=self.generator.device))

        def repeatable(weights):
            with drawing(seed, weights):
                return loss_of(weights)

        return repeatable

    @contextmanager
    def watched(self):
        """ValueError when something inside has drawn from the global generator, which is put back."""
        before = _state()
        try:
            yield
        finally:
            drawn = any(not torch.equal(a, b) for a, b in zip(before, _state(), strict=False))
            if drawn:
                torch.set_rng_state(before[0])
        if drawn:
            raise ValueError(
                "the loss draws random numbers (dropout in training mode?), so it is another function at each call: "
                "give meta_gradient a generator=torch.Generator(), or call module.eval() before"
            )


def _state() -> list[torch.Tensor]:
    with _ALONE:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [])]
