import torch

META = {
    "id": "h067",
    "kind": "data-read",
    "verdict": "wrong",
    "cause": "RMSprop's running square is built from g.data, so the denominator is constant in the graph.",
}


def rmsprop(rate, alpha=0.7, keep=False):
    sq = {}

    def update(name, w, g):
        raw = g if keep else g.data  # GUILTY
        sq[name] = alpha * sq.get(name, 0.0) + (1 - alpha) * raw**2
        return w - rate * g / (sq[name] + 1e-4).sqrt()

    return update


def loss(p):
    x = torch.tensor([0.1, 0.5, 1.0, 2.0], dtype=torch.float64)
    y = torch.tensor([0.9, 0.7, 0.4, 0.1], dtype=torch.float64)
    return ((p["amp"] * torch.exp(-p["rate"] * x) + p["off"] - y) ** 2).sum()


def meta_params():
    return {"rate": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def solve(meta, keep):
    upd = rmsprop(meta["rate"], keep=keep)
    p = {
        k: torch.tensor(v, dtype=torch.float64, requires_grad=True)
        for k, v in [("amp", 0.5), ("rate", 0.3), ("off", 0.2)]
    }
    for _ in range(5):
        gs = torch.autograd.grad(loss(p), list(p.values()), create_graph=True)
        p = {k: upd(k, w, g) for (k, w), g in zip(p.items(), gs)}
    return loss(p)


def meta_step(meta):
    return solve(meta, False)


def meta_step_fixed(meta):
    return solve(meta, True)
