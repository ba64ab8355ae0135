"""A home-made optimiser object with a .step() for the inner problem."""

import torch

META = {
    "id": "h003",
    "kind": "data-write",
    "verdict": "cut",
    "cause": "p.data.add_(...) changes numbers only; the optimiser object never builds a graph on the rate.",
}


class HyperSGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr

    def step(self, loss):
        gs = torch.autograd.grad(loss, self.params, create_graph=True)
        for p, g in zip(self.params, gs):
            p.data.add_(-self.lr * g)  # GUILTY


class HyperSGDFixed(HyperSGD):
    def step(self, loss):
        gs = torch.autograd.grad(loss, self.params, create_graph=True)
        self.params = [p - self.lr * g for p, g in zip(self.params, gs)]


A = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
b = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)


def energy(x):
    return 0.5 * x @ A @ x - b @ x + 0.1 * (x**4).sum()


def meta_params():
    return {"alpha": torch.tensor(0.15, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, cls=HyperSGD):
    opt = cls([torch.ones(3, dtype=torch.float64, requires_grad=True)], meta["alpha"])
    for t in range(5):
        opt.step(energy(opt.params[0]))
    return energy(opt.params[0])


def meta_step_fixed(meta):
    return meta_step(meta, HyperSGDFixed)
