import torch
import torch.nn.functional as F

META = {
    "id": "h099",
    "kind": "shape-error",
    "verdict": "raises",
    "cause": "The outer loss keeps one value per example (reduction='none'), so no gradient can be started from it.",
}

x = torch.tensor([[0.2, 1.0], [-0.8, 0.4], [0.5, -0.6]])
y = torch.tensor([1, 0, 1])


def ce(theta, reduction):
    return F.cross_entropy(F.silu(x @ theta["a"]) @ theta["b"], y, reduction=reduction)


def meta_params():
    return {"lr": torch.tensor(0.7, requires_grad=True)}


def adapt(theta, lr):
    g = torch.autograd.grad(ce(theta, "mean"), list(theta.values()), create_graph=True)
    return {k: v - lr * gi for (k, v), gi in zip(theta.items(), g)}


def theta0():
    torch.manual_seed(2)
    return {"a": torch.randn(2, 4, requires_grad=True), "b": torch.randn(4, 2, requires_grad=True)}


def meta_step(meta):
    adapted = adapt(adapt(theta0(), meta["lr"]), meta["lr"])
    return ce(adapted, "none")  # GUILTY


def meta_step_fixed(meta):
    adapted = adapt(adapt(theta0(), meta["lr"]), meta["lr"])
    return ce(adapted, "mean")
