import torch
from torch.func import grad

META = {
    "id": "h104",
    "kind": "stale-closure",
    "verdict": "independent",
    "cause": "The function handed to torch.func.grad ignores its argument and uses the weights of the enclosing scope.",
}

x = torch.tensor([[0.4, -0.2, 0.9], [0.1, 0.8, -0.5]], dtype=torch.float64)
y = torch.tensor([0.7, -0.3], dtype=torch.float64)


def loss(w):
    return (torch.erf(x @ w) - y).pow(2).sum()


def learn(w, lr, steps):
    for _ in range(steps):
        objective = lambda p: loss(w)  # GUILTY
        w = w - lr * grad(objective)(w)
    return w


def learn_ok(w, lr, steps):
    for _ in range(steps):
        objective = lambda p: loss(p)
        w = w - lr * grad(objective)(w)
    return w


def meta_params():
    return {"lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, learn=learn):
    w0 = torch.tensor([0.1, -0.1, 0.3], dtype=torch.float64)
    return loss(learn(w0, meta["lr"], 2))


def meta_step_fixed(meta):
    return meta_step(meta, learn_ok)
