import torch

META = {
    "id": "h047",
    "kind": "none-gradient",
    "verdict": "raises",
    "cause": "allow_unused=True returns None for the unused weight and the update multiplies it with the rate.",
}

dd = dict(dtype=torch.float64)
bank = {"a": torch.tensor([0.3, -0.8], **dd), "b": torch.tensor([1.1, 0.2], **dd), "spare": torch.zeros(2, **dd)}


def score(w, x):
    return torch.tanh(w["a"] * x).sum() * torch.sigmoid(w["b"] @ x)


def update(w, grads, lr):
    return {k: w[k] - lr * g for k, g in zip(w, grads)}  # GUILTY


def update_skip(w, grads, lr):
    return {k: w[k] if g is None else w[k] - lr * g for k, g in zip(w, grads)}


def meta_params():
    return {"lr": torch.tensor(0.5, **dd).requires_grad_()}


def meta_step(meta, update=update):
    x = torch.tensor([0.4, 1.5], **dd)
    w = {k: v.clone().requires_grad_() for k, v in bank.items()}
    for _ in range(3):
        obj = (score(w, x) - 1) ** 2
        w = update(w, torch.autograd.grad(obj, list(w.values()), create_graph=True, allow_unused=True), meta["lr"])
    return (score(w, x * 1.3) - 1) ** 2


def meta_step_fixed(meta):
    return meta_step(meta, update_skip)
