import torch
from torch.func import grad

META = {
    "id": "h064",
    "kind": "detach",
    "verdict": "cut",
    "params": ["log_lam"],
    "cause": "The regularisation strength is detached inside the loss handed to torch.func.grad.",
}

A = torch.tensor([[1.0, 0.3], [0.2, 0.9], [0.7, -0.5]], dtype=torch.float64)
b = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)


def ridge(w, log_lam, frozen=True):
    lam = log_lam.exp()
    if frozen:
        lam = lam.detach()  # GUILTY
    return ((A @ w - b) ** 2).mean() + lam * torch.cosh(w).sum()


def fit(log_lam, lr, frozen):
    w = torch.zeros(2, dtype=torch.float64) + 0.3
    dw = grad(ridge)
    for _ in range(3):
        w = w - lr * dw(w, log_lam, frozen)
    return w


def meta_params():
    return {
        "log_lam": torch.tensor(-2.0, dtype=torch.float64, requires_grad=True),
        "lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    w = fit(meta["log_lam"], meta["lr"], True)
    return ((A @ w - b).abs() ** 3).sum()


def meta_step_fixed(meta):
    w = fit(meta["log_lam"], meta["lr"], False)
    return ((A @ w - b).abs() ** 3).sum()
