import torch

META = {
    "id": "h010",
    "kind": "requires-grad-flag",
    "verdict": "raises",
    "cause": "requires_grad_(False) is called on an adapted (non-leaf) weight to 'freeze' it for evaluation.",
}

u = torch.tensor([0.2, -0.4, 1.1, 0.9], dtype=torch.float64)
v = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)


def risk(w, c):
    return torch.nn.functional.softplus((1 - 2 * v) * (w * u + c)).mean()


def adapt(lr, steps=3):
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    c = torch.zeros((), dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        dw, dc = torch.autograd.grad(risk(w, c), (w, c), create_graph=True)
        w, c = w - lr * dw, c - lr * dc
    return w, c


def meta_params():
    return {"lr": torch.tensor(1.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    adapted = adapt(meta["lr"])
    for p in adapted:
        p.requires_grad_(False)  # GUILTY
    return risk(*adapted)


def meta_step_fixed(meta):
    adapted = adapt(meta["lr"])
    return risk(*adapted)
