import torch

META = {
    "id": "h084",
    "kind": "nan-sqrt-zero",
    "verdict": "nan",
    "cause": "An L_1/2 penalty has an infinite slope at weights that start at exactly zero.",
}


def bridge(w):
    return w.abs().sqrt().sum()  # GUILTY


def bridge_smooth(w):
    return (w.abs() + 1e-2).sqrt().sum()


def design(n=6):
    i = torch.arange(n, dtype=torch.float64)
    return torch.stack([torch.ones(n, dtype=torch.float64), i / n, (i / n) ** 2], 1)


def meta_params():
    return {"strength": torch.tensor(0.01, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, penalty=bridge):
    Phi = design()
    y = torch.exp(Phi[:, 1])
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        obj = (Phi @ w - y).pow(2).mean() + meta["strength"] * penalty(w)
        w = w - 0.2 * torch.autograd.grad(obj, w, create_graph=True)[0]
    return (Phi @ w - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, bridge_smooth)
