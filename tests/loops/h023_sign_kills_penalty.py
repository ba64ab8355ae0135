import torch

META = {
    "id": "h023",
    "kind": "zero-gradient-op",
    "verdict": "independent",
    "cause": "The inner update uses only the sign of the gradient, so a loss weight has no influence (locally).",
}


def energy(w, lam):
    z = torch.stack([w[0] * w[1] - 1, w[0] + w[1] ** 2])
    return z.pow(2).sum() + lam * w.pow(2).sum()


class SignDescent:
    def __init__(self, lr):
        self.lr = lr

    def direction(self, g):
        return torch.sign(g)  # GUILTY

    def minimise(self, fun, w, n):
        for _ in range(n):
            g = torch.autograd.grad(fun(w), w, create_graph=True)[0]
            w = w - self.lr * self.direction(g)
        return w


class TanhDescent(SignDescent):
    def direction(self, g):
        return torch.tanh(g)


def meta_params():
    return {"lam": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, opt=SignDescent):
    w0 = torch.tensor([0.4, -1.3], dtype=torch.float64, requires_grad=True)
    w = opt(0.1).minimise(lambda w: energy(w, meta["lam"]), w0, 3)
    return energy(w, 0.0)


def meta_step_fixed(meta):
    return meta_step(meta, TanhDescent)
