import math
import torch

META = {
    "id": "h066",
    "kind": "inplace-on-optimizer-state",
    "verdict": "raises",
    "cause": "exp_avg_sq is updated in place after sqrt/div saved the version of the previous step.",
}


class Adam:
    def __init__(self, shapes, lr, b1=0.8, b2=0.9, eps=1e-3):
        self.lr, self.b1, self.b2, self.eps = lr, b1, b2, eps
        self.state = [
            {
                "step": 0,
                "exp_avg": torch.zeros(s, dtype=torch.float64),
                "exp_avg_sq": torch.zeros(s, dtype=torch.float64),
            }
            for s in shapes
        ]

    def moments(self, st, g):
        st["exp_avg"] = self.b1 * st["exp_avg"] + (1 - self.b1) * g
        st["exp_avg_sq"].mul_(self.b2).addcmul_(g, g, value=1 - self.b2)  # GUILTY

    def step(self, ps, gs):
        new = []
        for p, g, st in zip(ps, gs, self.state):
            st["step"] += 1
            self.moments(st, g)
            c1, c2 = 1 - self.b1 ** st["step"], 1 - self.b2 ** st["step"]
            denom = (st["exp_avg_sq"] + self.eps).sqrt() / math.sqrt(c2)
            gain = st["exp_avg_sq"] ** 0.05
            new.append(p - self.lr / c1 * gain * st["exp_avg"] / denom)
        return new


class FunctionalAdam(Adam):
    def moments(self, st, g):
        st["exp_avg"] = self.b1 * st["exp_avg"] + (1 - self.b1) * g
        st["exp_avg_sq"] = self.b2 * st["exp_avg_sq"] + (1 - self.b2) * g * g


z = torch.tensor([[0.5, 0.2], [-0.7, 0.9], [0.4, -0.3], [1.1, 0.6]], dtype=torch.float64)


def contrast(ps):
    e = torch.tanh(z @ ps[0] + ps[1])
    sim = e @ e.T
    return torch.nn.functional.cross_entropy(sim, torch.tensor([1, 0, 3, 2]))


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, A=Adam):
    ps = [
        torch.tensor([[0.6, 0.1], [-0.2, 0.8]], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True),
    ]
    opt = A([p.shape for p in ps], meta["lr"])
    for _ in range(3):
        ps = opt.step(ps, torch.autograd.grad(contrast(ps), ps, create_graph=True))
    return contrast(ps)


def meta_step_fixed(meta):
    return meta_step(meta, FunctionalAdam)
