"""TorchOpt: MetaSGD moves the module itself, which is taken back to its start before each inner loop.

A learned rate that is one tensor is given as lr. One that changes from step to step can only be a schedule, a function
of the step's number; ours returns the rate that the loop has just computed.
"""

import torchopt

from contestants.on_torch import WithAdam


class Contestant(WithAdam):
    def __init__(self, task, inner_steps, dtype):
        super().__init__(task, inner_steps, dtype)
        self.rate = None
        self.sgd = torchopt.MetaSGD(self.module, lr=self.scheduled if task.from_loss else self.meta[0])
        self.start = [torchopt.extract_state_dict(part) for part in (self.module, self.sgd)]

    def scheduled(self, _step):
        return self.rate

    def outer_loss(self):
        for part, start in zip((self.module, self.sgd), self.start, strict=True):
            torchopt.recover_state_dict(part, start)
        for x, y in self.batches:
            loss = self.criterion(self.module(x), y)
            self.rate = self.rate_at(loss) if self.task.from_loss else None
            self.sgd.step(loss)
        x, y = self.outer
        return self.criterion(self.module(x), y)
