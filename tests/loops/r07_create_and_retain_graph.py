import torch

META = {"id": "r07", "kind": "create_graph with retain_graph", "verdict": "right"}

s = torch.tensor([0.2, 0.9, -0.4, 1.3], dtype=torch.float64)


def model(th, z):
    return th["c"] + th["a"] * torch.sigmoid(th["b"] * z)


def meta_params():
    return {
        "a": torch.tensor(1.1, dtype=torch.float64, requires_grad=True),
        "b": torch.tensor(-0.7, dtype=torch.float64, requires_grad=True),
        "c": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    th = meta
    support_losses = []
    for _ in range(2):
        l = (model(th, s) - s.cos()).pow(2).mean()
        support_losses.append(l)
        gs = torch.autograd.grad(l, list(th.values()), create_graph=True, retain_graph=True)
        th = {k: v - 0.4 * g for (k, v), g in zip(th.items(), gs)}
    return (model(th, s + 0.5) - (s + 0.5).cos()).pow(2).mean() + 0.1 * torch.stack(support_losses).sum()
