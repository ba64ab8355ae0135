"""Consistency with an exponential moving average of the adapted student in the outer loss."""

import torch

META = {
    "id": "h074",
    "kind": "no-grad-update",
    "verdict": "wrong",
    "cause": "The averaged teacher depends on the learned rate, but is accumulated under no_grad.",
}

data = torch.tensor([[0.4, 0.2, 0.9], [-0.5, 1.2, 0.3], [0.8, -0.7, 0.1]], dtype=torch.float64)
cls = torch.tensor([0, 1, 1])


def probs(W, x):
    return torch.softmax(torch.tanh(x) @ W, 1)


class Ema:
    def __init__(self, W, beta=0.5):
        self.avg, self.beta = W, beta

    def update(self, W):
        with torch.no_grad():  # GUILTY
            self.avg = self.beta * self.avg + (1 - self.beta) * W


class EmaGraph(Ema):
    def update(self, W):
        self.avg = self.beta * self.avg + (1 - self.beta) * W


def meta_params():
    return {"lr": torch.tensor(0.9, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, E=Ema):
    W = torch.tensor([[0.1, 0.2], [-0.3, 0.4], [0.5, -0.6]], dtype=torch.float64, requires_grad=True)
    ema = E(W)
    for _ in range(3):
        ce = torch.nn.functional.nll_loss(probs(W, data).log(), cls)
        W = W - meta["lr"] * torch.autograd.grad(ce, W, create_graph=True)[0]
        ema.update(W)
    student, teacher = probs(W, data + 0.2), probs(ema.avg, data)
    return (student - teacher).pow(2).sum() + torch.nn.functional.nll_loss(student.log(), cls)


def meta_step_fixed(meta):
    return meta_step(meta, EmaGraph)
