import torch
from torch import nn

META = {
    "id": "o02",
    "kind": "zero-grad-missing",
    "cause": "The meta-optimiser's gradients are never cleared (the module's are), so they pile up.",
}


class Task:
    def __init__(self, i):
        g = torch.Generator().manual_seed(i)
        self.x = torch.randn(6, 2, generator=g)
        self.y = self.x @ torch.randn(2, 1, generator=g)


class MetaSGD(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Linear(2, 1)
        self.log_lr = nn.Parameter(torch.tensor([-2.0, -2.0]))

    def forward(self, task):
        p = dict(self.model.named_parameters())
        mse = lambda p: nn.functional.mse_loss(torch.func.functional_call(self.model, p, (task.x,)), task.y)
        g = torch.autograd.grad(mse(p), list(p.values()), create_graph=True)
        p = {k: v - lr * gi for (k, v), lr, gi in zip(p.items(), self.log_lr.exp(), g)}
        return mse(p)


def train(clear):
    learner = MetaSGD()
    outer = torch.optim.Adam(learner.parameters(), lr=0.02)
    sizes = []
    for it in range(8):
        clear(learner, outer)
        learner(Task(it % 3)).backward()
        sizes.append(learner.log_lr.grad.norm().item())
        outer.step()
    return sizes


def run():
    return train(lambda learner, outer: learner.model.zero_grad())  # GUILTY


def run_fixed():
    return train(lambda learner, outer: outer.zero_grad())
