"""Hyper-gradient of the weight decay of a logistic regression."""

import torch
import torch.nn.functional as F

META = {
    "id": "h012",
    "kind": "create-graph-forgotten",
    "verdict": "wrong",
    "params": ["decay"],
    "cause": "autograd.grad without create_graph: the decay only enters through the gradient.",
}

X = torch.tensor(
    [[1.0, 0.2, -0.3], [1.0, -0.5, 0.8], [1.0, 1.3, 0.1], [1.0, -0.9, -1.1], [1.0, 0.4, 0.6]], dtype=torch.float64
)
y = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0], dtype=torch.float64)


def objective(w, decay):
    return F.binary_cross_entropy_with_logits(X @ w, y) + decay * (w * w).sum()


def meta_params():
    return {"decay": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def train(decay, second_order=False):
    w = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        loss = objective(w, decay)
        if second_order:
            g = torch.autograd.grad(loss, w, create_graph=True)[0]
        else:
            g = torch.autograd.grad(loss, w)[0]  # GUILTY
        w = w - 0.7 * g
    return w


def meta_step(meta):
    w = train(meta["decay"])  # ALSO
    return F.binary_cross_entropy_with_logits(X.flip(1) @ w, y) + 0.01 * meta["decay"]


def meta_step_fixed(meta):
    w = train(meta["decay"], second_order=True)
    return F.binary_cross_entropy_with_logits(X.flip(1) @ w, y) + 0.01 * meta["decay"]
