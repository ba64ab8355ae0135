import torch
from collections import OrderedDict

META = {
    "id": "h002",
    "kind": "data-read",
    "verdict": "wrong",
    "cause": "p.data in the update cuts the path from one inner step to the next.",
}

dt = torch.float64
X = torch.linspace(-1.5, 1.5, 10, dtype=dt).unsqueeze(1)
Y = torch.sin(2 * X) + 0.3 * X


def init():
    g = torch.Generator().manual_seed(5)
    return OrderedDict(
        w1=torch.randn(1, 8, generator=g, dtype=dt).requires_grad_(),
        b1=torch.zeros(8, dtype=dt, requires_grad=True),
        w2=(torch.randn(8, 1, generator=g, dtype=dt) * 0.5).requires_grad_(),
    )


def mse(p, x, y):
    return (torch.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] - y).square().mean()


def meta_params():
    return {k: torch.tensor(v, dtype=dt, requires_grad=True) for k, v in [("w1", 0.1), ("b1", 0.05), ("w2", 0.2)]}


def sgd_step(p, rates):
    gs = dict(zip(p, torch.autograd.grad(mse(p, X[::2], Y[::2]), tuple(p.values()), create_graph=True)))
    return OrderedDict((k, p[k].data - rates[k] * gs[k]) for k in p)  # GUILTY


def sgd_step_ok(p, rates):
    gs = dict(zip(p, torch.autograd.grad(mse(p, X[::2], Y[::2]), tuple(p.values()), create_graph=True)))
    return OrderedDict((k, p[k] - rates[k] * gs[k]) for k in p)


def meta_step(meta, step=sgd_step):
    p = init()
    for _ in range(3):
        p = step(p, meta)
    return mse(p, X[1::2], Y[1::2])


def meta_step_fixed(meta):
    return meta_step(meta, sgd_step_ok)
