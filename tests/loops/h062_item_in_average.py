import torch

META = {
    "id": "h062",
    "kind": "number-extracted",
    "verdict": "wrong",
    "cause": "All task losses but the last are added with .item() to the running total.",
}

tasks = torch.tensor([[1.0, 0.2], [-0.4, 0.8], [0.3, -1.0]], dtype=torch.float64)


def adapt_and_score(w, c, lr):
    inner = (torch.sin(w) - c).pow(2).sum()
    g = torch.autograd.grad(inner, w, create_graph=True)[0]
    w = w - lr * g
    return (torch.sin(w + 0.1) - c).pow(2).sum()


def meta_params():
    return {
        "init": torch.tensor([0.1, 0.3], dtype=torch.float64, requires_grad=True),
        "lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    running, last = 0.0, None
    for c in tasks:
        if last is not None:
            running += last.item()  # GUILTY
        last = adapt_and_score(meta["init"], c, meta["lr"])
    return (running + last) / len(tasks)


def meta_step_fixed(meta):
    running, last = 0.0, None
    for c in tasks:
        if last is not None:
            running = running + last
        last = adapt_and_score(meta["init"], c, meta["lr"])
    return (running + last) / len(tasks)
