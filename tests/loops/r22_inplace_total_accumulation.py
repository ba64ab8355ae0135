import torch

META = {"id": "r22", "kind": "in-place accumulation of the loss", "verdict": "right"}


def tasks():
    for a in (0.5, 1.0, 1.5):
        x = torch.linspace(-1, 1, 6, dtype=torch.float64) + 0.05
        yield x, torch.sin(a * 3 * x)


def net(p, x):
    return torch.tanh(x[:, None] * p["w"] + p["b"]) @ p["o"]


def meta_params():
    g = torch.Generator().manual_seed(8)
    return {k: torch.randn(4, generator=g, dtype=torch.float64).requires_grad_() for k in ("w", "b", "o")}


def meta_step(meta):
    total = torch.zeros((), dtype=torch.float64)
    count = 0
    for x, y in tasks():
        p = meta
        for _ in range(2):
            l = (net(p, x[::2]) - y[::2]).pow(2).mean()
            gs = torch.autograd.grad(l, list(p.values()), create_graph=True)
            p = {k: v - 0.1 * g for (k, v), g in zip(p.items(), gs)}
        total += (net(p, x[1::2]) - y[1::2]).pow(2).mean()
        count += 1
    total /= count
    return total
