import torch
import torch.nn as nn

META = {
    "id": "h035",
    "kind": "number-extracted",
    "verdict": "cut",
    "cause": "The optimiser's constructor stores float(lr).",
}


class Momentum:
    def __init__(self, lr, mu=0.9):
        self.lr = float(lr)  # GUILTY
        self.mu = mu
        self.buf = None

    def update(self, ws, gs):
        self.buf = list(gs) if self.buf is None else [self.mu * b + g for b, g in zip(self.buf, gs)]
        return [w - self.lr * b for w, b in zip(ws, self.buf)]


class MomentumOK(Momentum):
    def __init__(self, lr, mu=0.9):
        super().__init__(0.0, mu)
        self.lr = lr


def loss_fn(ws, n=5):
    x = torch.linspace(-1, 1, n, dtype=torch.float64).reshape(-1, 1)
    return nn.functional.mse_loss(torch.relu(x @ ws[0] + ws[1]) @ ws[2], x.abs())


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Opt=Momentum):
    torch.manual_seed(6)
    ws = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in [(1, 6), (6,), (6, 1)]]
    opt = Opt(meta["lr"])
    for _ in range(5):
        ws = opt.update(ws, torch.autograd.grad(loss_fn(ws), ws, create_graph=True))
    return loss_fn(ws, 9)


def meta_step_fixed(meta):
    return meta_step(meta, MomentumOK)
