import torch

META = {
    "id": "h053",
    "kind": "no-grad-update",
    "verdict": "wrong",
    "cause": "The velocity is accumulated inside a no_grad block, so its history is constant.",
}


class Nesterov:
    def __init__(self, lr, mom):
        self.lr = lr
        self.mom = mom
        self.vel = 0.0

    def accumulate(self, g):
        with torch.no_grad():  # GUILTY
            self.vel = self.mom * self.vel + g

    def step(self, w, closure):
        (g,) = torch.autograd.grad(closure(w), (w,), create_graph=True)
        self.accumulate(g)
        return w - self.lr * (g + self.mom * self.vel)


class NesterovOK(Nesterov):
    def accumulate(self, g):
        self.vel = self.mom * self.vel + g


M = torch.tensor([[3.0, 0.5], [0.5, 1.0]], dtype=torch.float64)


def closure(w):
    return (w @ M @ w).sqrt() + torch.sin(w).sum()


def meta_params():
    return {
        "lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "mom": torch.tensor(0.7, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, O=Nesterov):
    opt = O(meta["lr"], meta["mom"])
    w = torch.tensor([1.2, -0.8], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        w = opt.step(w, closure)
    return closure(w)


def meta_step_fixed(meta):
    return meta_step(meta, NesterovOK)
