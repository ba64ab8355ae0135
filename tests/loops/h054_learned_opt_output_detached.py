import torch
from torch import nn

META = {
    "id": "h054",
    "kind": "detach",
    "verdict": "cut",
    "cause": "The learned optimiser's proposal is detached before it is added to the weights.",
}


class CoordinateMLP:
    """Two-layer per-coordinate update rule, its parameters are the meta-parameters."""

    def __init__(self, theta):
        self.theta = theta

    def __call__(self, grad):
        feats = torch.stack([grad, grad.abs().add(1e-3).log()], -1)
        h = torch.tanh(feats @ self.theta["W"] + self.theta["b"])
        return (h @ self.theta["v"]).reshape(grad.shape)


def meta_params():
    torch.manual_seed(55)
    return {
        "W": torch.randn(2, 4, dtype=torch.float64).requires_grad_(),
        "b": torch.zeros(4, dtype=torch.float64, requires_grad=True),
        "v": (0.1 * torch.randn(4, dtype=torch.float64)).requires_grad_(),
    }


def optimizee(w):
    x = torch.tensor([[0.3, 1.0], [-0.9, 0.2], [0.4, -0.6]], dtype=torch.float64)
    return (torch.sin(x @ w) - x[:, 0]).square().mean()


def meta_step(meta):
    rule = CoordinateMLP(meta)
    w = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        g = torch.autograd.grad(optimizee(w), w, create_graph=True)[0]
        delta = rule(g)
        w = w + delta.detach()  # GUILTY
    return optimizee(w)


def meta_step_fixed(meta):
    rule = CoordinateMLP(meta)
    w = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        g = torch.autograd.grad(optimizee(w), w, create_graph=True)[0]
        delta = rule(g)
        w = w + delta
    return optimizee(w)
