import torch

META = {
    "id": "o03",
    "kind": "zero-grad-misplaced",
    "cause": "zero_grad stands between backward and step, so the optimiser never sees a gradient.",
}


def inner(theta, decay):
    w = theta
    for _ in range(2):
        g = torch.autograd.grad((w.cos() + decay * w**2).sum(), w, create_graph=True)[0]
        w = w - 0.3 * g
    return (w - 1.5).pow(2).sum()


class Outer:
    def __init__(self):
        self.decay = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
        self.theta = torch.tensor([0.3, 0.8], dtype=torch.float64, requires_grad=True)
        self.opt = torch.optim.SGD([self.decay, self.theta], lr=0.05)

    def epoch(self):
        loss = inner(self.theta, self.decay)
        loss.backward()
        self.opt.zero_grad()  # GUILTY
        self.opt.step()
        return loss.item()


class OuterFixed(Outer):
    def epoch(self):
        self.opt.zero_grad()
        loss = inner(self.theta, self.decay)
        loss.backward()
        self.opt.step()
        return loss.item()


def run(cls=Outer):
    o = cls()
    return [o.epoch() for _ in range(5)]


def run_fixed():
    return run(OuterFixed)
