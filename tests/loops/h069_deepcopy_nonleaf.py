import copy
import torch

META = {
    "id": "h069",
    "kind": "deepcopy",
    "verdict": "raises",
    "cause": "copy.deepcopy of adapted (non-leaf) weights is not supported.",
}


class Population:
    def __init__(self, start):
        self.best = start
        self.history = []

    def record(self, w):
        self.history.append(copy.deepcopy(w))  # GUILTY


class PopulationOK(Population):
    def record(self, w):
        self.history.append([t.detach().clone() for t in w])


def cost(w):
    return (w[0].sin() * w[1]).sum() + (w[0] ** 2).sum() + (w[1] - 1).pow(2).sum()


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, P=Population):
    w = [
        torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True),
    ]
    pop = P(w)
    for _ in range(2):
        gs = torch.autograd.grad(cost(w), w, create_graph=True)
        w = [a - meta["lr"] * g for a, g in zip(w, gs)]
        pop.record(w)
    return cost(w)


def meta_step_fixed(meta):
    return meta_step(meta, PopulationOK)
