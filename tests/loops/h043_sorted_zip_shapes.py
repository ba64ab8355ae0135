import torch

META = {
    "id": "h043",
    "kind": "shape-error",
    "verdict": "raises",
    "cause": "Parameters are zipped with gradients in a different (sorted) order, so shapes do not match.",
}

params0 = {
    "weight": torch.tensor([[0.1, 0.2, 0.3], [-0.4, 0.5, -0.6]], dtype=torch.float64),
    "bias": torch.tensor([0.1, -0.1, 0.3], dtype=torch.float64),
    "gain": torch.tensor([[1.0], [0.5], [-1.0]], dtype=torch.float64),
}
x = torch.tensor([[1.0, -1.0], [0.5, 2.0]], dtype=torch.float64)


def out(p):
    return torch.tanh(x @ p["weight"] + p["bias"]) @ p["gain"]


def criterion(p):
    return (out(p) - 1).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def adapt(p, lr, order):
    grads = torch.autograd.grad(criterion(p), [p[k] for k in p], create_graph=True)
    return {k: p[k] - lr * g for k, g in zip(order(p), grads)}  # ALSO


def meta_step(meta):
    p = {k: v.clone().requires_grad_() for k, v in params0.items()}
    for _ in range(2):
        p = adapt(p, meta["lr"], order=sorted)  # GUILTY
    return criterion(p)


def meta_step_fixed(meta):
    p = {k: v.clone().requires_grad_() for k, v in params0.items()}
    for _ in range(2):
        p = adapt(p, meta["lr"], order=list)
    return criterion(p)
