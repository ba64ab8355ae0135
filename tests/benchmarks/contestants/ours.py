"""metalib's engine on the stock module. Adam, on the meta-parameters, is metalib's own rule, on plain numbers."""

import torch
from tasks import OUTER_RATE

from contestants.on_torch import OnTorch
from metalib.metagrad import meta_gradient
from metalib.optimisers import Adam
from metalib.own import FromModule
from metalib.problems import Batch, Task
from metalib.rates import RATES, Learned


def problem_of(task, tensors: OnTorch) -> FromModule:
    batches = [Batch(*batch) for batch in tensors.batches[: len(task.inner)]]
    return FromModule(tensors.module, tensors.criterion, inner=batches, outer=Batch(*tensors.outer))


class OuterStep:
    """Adam's step from a subclass's `gradient`, {name: number}, to new `values`."""

    def begin(self, values: dict):
        self.values, self.steps, self.rule = values, 0, Adam()
        self.state = self.rule.start(values)

    def step(self):
        directions, self.state = self.rule.direction(self.steps, self.gradient(), self.state, self.values)
        self.values = {name: value - OUTER_RATE * directions[name] for name, value in self.values.items()}
        self.steps += 1


class Contestant(OuterStep):
    def __init__(self, task, inner_steps, dtype, mode):
        self.task, self.inner_steps, self.mode = task, inner_steps, mode
        self.problem = problem_of(task, OnTorch(task, inner_steps, dtype))
        self.begin(dict(task.meta))

    def found(self):
        rate = Learned(RATES["from loss"], self.values) if self.task.from_loss else self.values["rate"]
        return meta_gradient(self.problem, rate, self.inner_steps, self.mode)

    def gradient(self):
        return {name: derivative.item() for name, derivative in self.found().gradient.items()}

    def meta_gradient(self):
        found = self.found()
        return found.outer_loss.item(), [found.gradient[name].item() for name in self.values]


class Sweep(OuterStep):
    """All runs at once, each with its own row in the weights, its own batches, its own rate."""

    def __init__(self, runs, inner_steps, dtype):
        each = [OnTorch(run, inner_steps, dtype) for run in runs]
        starts = [run.module.state_dict() for run in each]
        self.problem, self.inner_steps = problem_of(runs[0], each[0]), inner_steps
        self.weights = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
        self.tasks = [Task([Batch(*batch) for batch in run.batches], Batch(*run.outer)) for run in each]
        self.begin({"rate": torch.stack([run.meta[0].detach() for run in each])})

    def found(self):
        rates, steps = self.values["rate"], self.inner_steps
        return meta_gradient(self.problem, rates, steps, "batched", weights=self.weights, task=self.tasks)

    def gradient(self):
        return self.found().gradient

    def meta_gradient(self):
        found = self.found()
        return found.outer_loss.tolist(), found.gradient["rate"].tolist()
