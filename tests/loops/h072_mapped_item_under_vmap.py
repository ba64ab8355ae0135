import torch
from torch.func import grad, vmap

META = {
    "id": "h072",
    "kind": "item-under-vmap",
    "verdict": "raises",
    "cause": ".item() on the per-task norm cannot be called inside vmap.",
}

XS = torch.tensor([[[1.0, 0.2], [0.4, -1.0]], [[0.3, 0.3], [-0.8, 0.5]]], dtype=torch.float64)
YS = torch.tensor([[1.0, -1.0], [0.5, 0.0]], dtype=torch.float64)


def loss(w, x, y):
    return (torch.atan(x @ w) - y).pow(2).sum()


def rescale(g):
    n = (1 + g.square().sum()).sqrt().item()  # GUILTY
    return g / n


def rescale_ok(g):
    n = (1 + g.square().sum()).sqrt()
    return g / n


def meta_params():
    return {
        "w0": torch.tensor([0.3, -0.6], dtype=torch.float64, requires_grad=True),
        "lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, rescale=rescale):
    def per_task(x, y):
        w = meta["w0"]
        for _ in range(2):
            w = w - meta["lr"] * rescale(grad(loss)(w, x, y))
        return loss(w, x.flip(0), y)

    return vmap(per_task)(XS, YS).mean()


def meta_step_fixed(meta):
    return meta_step(meta, rescale_ok)
