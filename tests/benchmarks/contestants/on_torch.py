"""What the contestants on PyTorch share: tensors of a task, its module, and the outer step."""

from functools import cached_property

import torch
from tasks import OUTER_RATE
from torch import nn
from torch.nn import functional as F


class OneWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.w * x


class Net(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def module_of(task, dtype: torch.dtype) -> nn.Module:
    """The task's model as a module that holds the initial weights."""
    if task.labels:
        hidden, inputs = task.weights["fc1.weight"].shape
        module = Net(inputs, hidden, len(task.weights["fc2.bias"]))
    else:
        module = OneWeight()
    module.to(dtype).load_state_dict({name: torch.from_numpy(w) for name, w in task.weights.items()})
    return module


def batch_of(batch, dtype: torch.dtype) -> tuple:
    """Inputs and numbers in `dtype`; classes stay integers."""
    tensors = (torch.from_numpy(part) for part in batch)
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in tensors)


class OnTorch:
    """A task as tensors."""

    def __init__(self, task, inner_steps: int, dtype: str):
        dtype = getattr(torch, dtype)
        self.task = task
        self.module = module_of(task, dtype)
        self.criterion = F.cross_entropy if task.labels else F.mse_loss
        inner = [batch_of(batch, dtype) for batch in task.inner]
        self.batches = [inner[step % len(inner)] for step in range(inner_steps)]
        self.outer = batch_of(task.outer, dtype)
        self.meta = [torch.tensor(value, dtype=dtype, requires_grad=True) for value in task.meta.values()]


class WithAdam(OnTorch):
    """The outer step: torch.optim.Adam on the meta-parameters, whose gradient a subclass's `outer_loss` carries."""

    @cached_property
    def adam(self):
        return torch.optim.Adam(self.meta, lr=OUTER_RATE)

    def rate_at(self, loss):
        """softplus(slope · loss + offset), the same in every contestant whose task has it."""
        slope, offset = self.meta
        return F.softplus(slope * loss + offset)

    def outer_loss(self):
        raise NotImplementedError

    def meta_gradient(self):
        loss = self.outer_loss()
        return loss.item(), [grad.item() for grad in torch.autograd.grad(loss, self.meta)]

    def step(self):
        gradient = torch.autograd.grad(self.outer_loss(), self.meta)
        for meta, grad in zip(self.meta, gradient, strict=True):
            meta.grad = grad
        self.adam.step()
