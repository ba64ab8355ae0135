"""Learned example weights (reweighting), normalised before use."""

import torch
import torch.nn.functional as F

META = {
    "id": "h083",
    "kind": "number-extracted",
    "verdict": "wrong",
    "cause": "The normaliser of the example weights is taken with .item().",
}

noisy_x = torch.tensor([[1.0, 0.2], [-0.5, 0.7], [0.1, -1.1], [0.9, 0.9]], dtype=torch.float64)
noisy_y = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
clean_x = torch.tensor([[0.8, 0.1], [-0.4, -0.9]], dtype=torch.float64)
clean_y = torch.tensor([1.0, 0.0], dtype=torch.float64)


def normalise(w):
    w = torch.sigmoid(w)
    return w / w.sum().item()  # GUILTY


def normalise_ok(w):
    w = torch.sigmoid(w)
    return w / w.sum()


def meta_params():
    return {"example_logits": torch.tensor([0.1, -0.3, 0.5, 0.0], dtype=torch.float64, requires_grad=True)}


def meta_step(meta, normalise=normalise):
    theta = torch.tensor([-0.9, 0.1, -0.2], dtype=torch.float64, requires_grad=True)
    ew = normalise(meta["example_logits"])
    for _ in range(2):
        ls = F.binary_cross_entropy_with_logits(noisy_x @ theta[:2] + theta[2], noisy_y, reduction="none")
        theta = theta - 0.8 * torch.autograd.grad((ew * ls).sum(), theta, create_graph=True)[0]
    return F.binary_cross_entropy_with_logits(clean_x @ theta[:2] + theta[2], clean_y)


def meta_step_fixed(meta):
    return meta_step(meta, normalise_ok)
