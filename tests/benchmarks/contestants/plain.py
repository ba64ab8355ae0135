"""The base of all ratios: a functional loop on a list of tensors, written by hand for its model, with nothing spare."""

import torch
from torch.nn import functional as F

from contestants.on_torch import WithAdam


class Contestant(WithAdam):
    def __init__(self, task, inner_steps, dtype):
        super().__init__(task, inner_steps, dtype)
        self.start = [w.detach().clone().requires_grad_() for w in self.module.parameters()]

    def outer_loss(self):
        return self.network() if self.task.labels else self.one_weight()

    def network(self):
        def loss_of(weights, x, y):
            w1, b1, w2, b2 = weights
            return F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), y)

        (rate,), weights = self.meta, self.start
        for x, y in self.batches:
            grads = torch.autograd.grad(loss_of(weights, x, y), weights, create_graph=True)
            weights = [w - rate * grad for w, grad in zip(weights, grads, strict=True)]
        return loss_of(weights, *self.outer)

    def one_weight(self):
        (w,) = self.start
        for x, y in self.batches:
            loss = F.mse_loss(w * x, y)
            (grad,) = torch.autograd.grad(loss, w, create_graph=True)
            w = w - self.rate_at(loss) * grad
        x, y = self.outer
        return F.mse_loss(w * x, y)


class Sweep:
    """The runs one after the other, each with an Adam of its own."""

    def __init__(self, runs, inner_steps, dtype):
        self.runs = [Contestant(run, inner_steps, dtype) for run in runs]

    def meta_gradient(self):
        found = [run.meta_gradient() for run in self.runs]
        return [loss for loss, _ in found], [derivative for _, (derivative,) in found]

    def step(self):
        for run in self.runs:
            run.step()
