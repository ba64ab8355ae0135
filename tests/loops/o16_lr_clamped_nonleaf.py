import torch

META = {
    "id": "o16",
    "kind": "rebound-meta-parameter",
    "raises": True,
    "cause": "lr = lr.clamp(min=0) rebinds the name to a non-leaf whose graph is carried into, and freed by, the next backward.",
}


def episode(lr, c=torch.tensor([0.2, -0.9], dtype=torch.float64)):
    w = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        g = torch.autograd.grad((w.tanh() - c).pow(2).sum(), w, create_graph=True)[0]
        w = w - lr * g
    return (w.tanh() - c).pow(2).sum()


class Tuner:
    def __init__(self):
        self.lr = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
        self.opt = torch.optim.SGD([self.lr], lr=0.1)

    def project(self):
        self.lr = self.lr.clamp(min=0.0)  # GUILTY

    def fit(self, n):
        trace = []
        for _ in range(n):
            loss = episode(self.lr)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.project()
            trace.append(loss.item())
        return trace


class TunerFixed(Tuner):
    def project(self):
        with torch.no_grad():
            self.lr.clamp_(min=0.0)


def run():
    return Tuner().fit(5)


def run_fixed():
    return TunerFixed().fit(5)
