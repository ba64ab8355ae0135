"""Learned mixing weights over three data sources; the source is picked with argmax."""

import torch
import torch.nn.functional as F

META = {
    "id": "h021",
    "kind": "zero-gradient-op",
    "verdict": "independent",
    "cause": "argmax picks a source by index, so the loss is locally constant in the scores.",
}

sources = torch.tensor([[1.0, 2.0, 0.5], [-1.0, 0.3, 0.2], [0.4, 0.4, -2.0]], dtype=torch.float64)
truth = torch.tensor(0.7, dtype=torch.float64)


def meta_params():
    return {"scores": torch.tensor([0.1, 0.4, -0.2], dtype=torch.float64, requires_grad=True)}


def mixture(scores, hard):
    if hard:
        pick = F.one_hot(scores.argmax(), 3).to(scores)  # GUILTY
    else:
        pick = torch.softmax(scores, 0)
    return pick @ sources


def episode(scores, hard):
    x = mixture(scores, hard)
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        e = (torch.tanh(w @ x) - truth) ** 2
        (dw,) = torch.autograd.grad(e, w, create_graph=True)
        w = w - 0.3 * dw
    return (torch.tanh(w @ sources.mean(0)) - truth) ** 2


def meta_step(meta):
    return episode(meta["scores"], hard=True)


def meta_step_fixed(meta):
    return episode(meta["scores"], hard=False)
