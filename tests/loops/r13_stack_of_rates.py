import torch

META = {"id": "r13", "kind": "torch.stack of meta scalars", "verdict": "right"}

NAMES = ["conv", "bias", "fc"]


def build(meta):
    rates = torch.stack([meta[n] for n in NAMES])
    return dict(zip(NAMES, torch.nn.functional.softplus(rates).unbind(0)))


img = torch.sin(torch.arange(50, dtype=torch.float64)).view(2, 1, 5, 5)
lab = torch.tensor([0.0, 1.0], dtype=torch.float64)


def logits(p, x):
    h = torch.nn.functional.conv2d(x, p["conv"], p["bias"]).tanh()
    return h.flatten(1) @ p["fc"]


def meta_params():
    return {n: torch.tensor(v, dtype=torch.float64, requires_grad=True) for n, v in zip(NAMES, (-1.0, -2.0, -1.5))}


def meta_step(meta):
    lr = build(meta)
    g = torch.Generator().manual_seed(1)
    p = {
        "conv": torch.randn(1, 1, 3, 3, generator=g, dtype=torch.float64).requires_grad_(),
        "bias": torch.zeros(1, dtype=torch.float64, requires_grad=True),
        "fc": torch.randn(9, generator=g, dtype=torch.float64).mul(0.3).requires_grad_(),
    }
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    for _ in range(2):
        gs = torch.autograd.grad(bce(logits(p, img), lab), [p[n] for n in NAMES], create_graph=True)
        p = {n: p[n] - lr[n] * gi for n, gi in zip(NAMES, gs)}
    return bce(logits(p, img.flip(-1)), lab)
