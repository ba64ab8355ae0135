import torch

META = {
    "id": "h086",
    "kind": "data-write",
    "verdict": "cut",
    "params": ["wd"],
    "cause": "Decoupled weight decay is applied with w.data.mul_, outside the graph.",
}


class AdamWish:
    def __init__(self, lr, wd):
        self.lr, self.wd = lr, wd

    def decay(self, w):
        w.data.mul_(1 - 0.1 * self.wd)  # GUILTY
        return w

    def step(self, w, g):
        w = self.decay(w)
        return w - self.lr * g / (g * g + 1e-2).sqrt()


class AdamWishOK(AdamWish):
    def decay(self, w):
        return w * (1 - 0.1 * self.wd)


c = torch.tensor([1.0, -2.0, 0.5, 0.1], dtype=torch.float64)


def loss(w):
    return torch.log(torch.cosh(w - c)).sum() + 0.3 * (w[:-1] * w[1:]).sum()


def meta_params():
    return {
        "lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
        "wd": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, O=AdamWish):
    w = torch.tensor([0.3, 0.3, -0.4, 1.0], dtype=torch.float64, requires_grad=True)
    opt = O(meta["lr"], meta["wd"])
    for _ in range(3):
        w = opt.step(w, torch.autograd.grad(loss(w), w, create_graph=True)[0])
    return loss(w)


def meta_step_fixed(meta):
    return meta_step(meta, AdamWishOK)
