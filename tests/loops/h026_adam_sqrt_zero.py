import torch

META = {
    "id": "h026",
    "kind": "nan-sqrt-zero",
    "verdict": "nan",
    "cause": "Adam's denominator takes sqrt of an exactly zero second moment (dead unit): infinite derivative times zero.",
}


class DiffAdam:
    def __init__(self, lr, betas=(0.9, 0.99), eps=1e-8, inside=False):
        self.lr, self.betas, self.eps, self.inside = lr, betas, eps, inside
        self.t, self.m, self.v = 0, None, None

    def __call__(self, params, grads):
        b1, b2 = self.betas
        if self.m is None:
            self.m = [torch.zeros_like(p) for p in params]
            self.v = [torch.zeros_like(p) for p in params]
        self.t += 1
        self.m = [b1 * m + (1 - b1) * g for m, g in zip(self.m, grads)]
        self.v = [b2 * v + (1 - b2) * g * g for v, g in zip(self.v, grads)]
        out = []
        for p, m, v in zip(params, self.m, self.v):
            mh, vh = m / (1 - b1**self.t), v / (1 - b2**self.t)
            if self.inside:
                den = (vh + self.eps).sqrt()
            else:
                den = vh.sqrt() + self.eps  # GUILTY
            out.append(p - self.lr * mh / den)
        return out


x = torch.tensor([[1.0, 2.0], [2.0, 1.0], [0.5, 1.5]], dtype=torch.float64)
y = torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)


def loss(ps):
    return ((torch.relu(x @ ps[0]) ** 2 @ ps[1]) - y).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def go(lr, inside):
    ps = [
        torch.tensor([[0.4, -1.0], [0.3, -1.0]], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.5, 0.5], dtype=torch.float64, requires_grad=True),
    ]
    opt = DiffAdam(lr, inside=inside)
    for _ in range(3):
        ps = opt(ps, torch.autograd.grad(loss(ps), ps, create_graph=True))
    return loss(ps)


def meta_step(meta):
    return go(meta["lr"], inside=False)


def meta_step_fixed(meta):
    return go(meta["lr"], inside=True)
