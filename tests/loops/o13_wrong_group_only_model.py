import torch
from torch import nn

META = {
    "id": "o13",
    "kind": "optimizer-wrong-params",
    "cause": "The outer optimiser is given the model's parameters only; the learned rates are kept in a plain list and left out.",
}


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.net = nn.Linear(3, 2)
        self.lrs = [torch.full_like(p, 0.1).requires_grad_() for p in self.net.parameters()]

    def adapted_loss(self, x, y):
        p = dict(self.net.named_parameters())
        ce = lambda p: nn.functional.cross_entropy(torch.func.functional_call(self.net, p, (x,)), y)
        g = torch.autograd.grad(ce(p), list(p.values()), create_graph=True)
        return ce({k: v - lr * gi for (k, v), lr, gi in zip(p.items(), self.lrs, g)})

    def all_meta(self):
        return list(self.net.parameters()) + self.lrs


def train(params_of):
    learner = Learner()
    optimizer = torch.optim.SGD(params_of(learner), lr=0.5)
    x, y = torch.randn(9, 3), torch.randint(0, 2, (9,))
    for _ in range(5):
        optimizer.zero_grad()
        learner.adapted_loss(x, y).backward()
        optimizer.step()
    return [float((lr - 0.1).abs().max().detach()) for lr in learner.lrs]


def run():
    return train(lambda learner: learner.parameters())  # GUILTY


def run_fixed():
    return train(Learner.all_meta)
