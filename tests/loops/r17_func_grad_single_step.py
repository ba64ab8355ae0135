import torch
from torch.func import grad, grad_and_value

META = {"id": "r17", "kind": "torch.func.grad", "verdict": "right"}

x = torch.tensor([0.1, 0.4, 0.8, 1.5], dtype=torch.float64)


def loss(p, lam):
    pred = p["a"] * torch.exp(-p["k"] * x)
    return (pred - torch.tensor([1.9, 1.3, 0.9, 0.4], dtype=torch.float64)).pow(2).mean() + lam * p["k"] ** 2


def meta_params():
    return {
        "lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
        "lam": torch.tensor(0.05, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    p = {"a": torch.tensor(1.0, dtype=torch.float64), "k": torch.tensor(0.5, dtype=torch.float64)}
    g = grad(loss)(p, meta["lam"])
    p = {n: p[n] - meta["lr"] * g[n] for n in p}
    g, val = grad_and_value(loss)(p, meta["lam"])
    print_only = val.item()
    p = {n: p[n] - meta["lr"] * g[n] for n in p}
    return loss(p, 0.0) + 0 * print_only
