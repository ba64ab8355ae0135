import torch
from torch import Tensor

META = {
    "id": "h017",
    "kind": "inplace-on-optimizer-state",
    "verdict": "raises",
    "cause": "The velocity is updated in place although lr * velocity saved it for backward one step earlier.",
}


class HeavyBall:
    """w <- w - lr * v,  v <- beta * v + g"""

    def __init__(self, lr: Tensor, beta: Tensor):
        self.lr, self.beta = lr, beta
        self.v: dict[str, Tensor] = {}

    def init(self, params):
        self.v = {k: torch.zeros_like(p) for k, p in params.items()}

    def apply(self, params, grads):
        new = {}
        for k in params:
            self.v[k] *= self.beta  # GUILTY
            self.v[k] += grads[k]  # ALSO
            new[k] = params[k] - self.lr * self.v[k]
        return new


class HeavyBallOK(HeavyBall):
    def apply(self, params, grads):
        self.v = {k: self.beta * self.v[k] + grads[k] for k in params}
        return {k: params[k] - self.lr * self.v[k] for k in params}


def rosenbrock(p):
    return ((1 - p["x"]) ** 2 + 5 * (p["y"] - p["x"] ** 2) ** 2).sum()


def meta_params():
    return {
        "lr": torch.tensor(0.01, dtype=torch.float64, requires_grad=True),
        "beta": torch.tensor(0.8, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, rule=HeavyBall):
    p = {
        "x": torch.tensor([-0.5, 0.3], dtype=torch.float64, requires_grad=True),
        "y": torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True),
    }
    opt = rule(meta["lr"], meta["beta"])
    opt.init(p)
    for _ in range(5):
        g = torch.autograd.grad(rosenbrock(p), tuple(p.values()), create_graph=True)
        p = opt.apply(p, dict(zip(p, g)))
    return rosenbrock(p)


def meta_step_fixed(meta):
    return meta_step(meta, HeavyBallOK)
