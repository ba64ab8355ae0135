import torch

META = {
    "id": "h100",
    "kind": "detach",
    "verdict": "cut",
    "cause": "The best weights so far are kept as detached snapshots, and the outer loss is taken at the best ones.",
}


class EarlyStopping:
    def __init__(self):
        self.best_val, self.best = float("inf"), None

    def snapshot(self, w):
        return {k: t.detach().clone().requires_grad_() for k, t in w.items()}  # GUILTY

    def __call__(self, val, w):
        if val.item() < self.best_val:
            self.best_val, self.best = val.item(), self.snapshot(w)


class EarlyStoppingOK(EarlyStopping):
    def snapshot(self, w):
        return dict(w)


x = torch.tensor([-1.0, -0.3, 0.4, 1.2], dtype=torch.float64)


def fit(w):
    return (w["a"] * torch.sin(w["b"] * x) - x**3).pow(2).mean()


def val(w):
    return (w["a"] * torch.sin(w["b"] * (x + 0.1)) - (x + 0.1) ** 3).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Stop=EarlyStopping):
    w = {
        "a": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
        "b": torch.tensor(1.5, dtype=torch.float64, requires_grad=True),
    }
    stop = Stop()
    for epoch in range(5):
        da, db = torch.autograd.grad(fit(w), (w["a"], w["b"]), create_graph=True)
        w = dict(a=w["a"] - meta["lr"] * da, b=w["b"] - meta["lr"] * db)
        stop(val(w), w)
    return val(stop.best)


def meta_step_fixed(meta):
    return meta_step(meta, EarlyStoppingOK)
