import torch

META = {"id": "r27", "kind": "safe where, clamp not active, allow_unused", "verdict": "right"}

u = torch.tensor([-0.4, 0.0, 0.5, 1.6], dtype=torch.float64)


def g(z):
    pos = z > 0
    return torch.where(pos, torch.where(pos, z, torch.ones_like(z)).sqrt(), 0.2 * z)


def loss(w):
    return (w["s"] * g(w["k"] * u + 0.05) - u.abs()).pow(2).sum()


def meta_params():
    return {"lr": torch.tensor(0.07, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    lr = meta["lr"].clamp(1e-6, 1.0)
    w = {
        "s": torch.tensor(0.8, dtype=torch.float64, requires_grad=True),
        "k": torch.tensor(0.6, dtype=torch.float64, requires_grad=True),
        "spare": torch.ones(3, dtype=torch.float64, requires_grad=True),
    }
    for _ in range(3):
        gs = torch.autograd.grad(loss(w), list(w.values()), create_graph=True, allow_unused=True)
        w = {k: v if gi is None else v - lr * torch.nan_to_num(gi) for (k, v), gi in zip(w.items(), gs)}
    return loss(w)
