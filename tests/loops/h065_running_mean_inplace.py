import torch
import torch.nn as nn

META = {
    "id": "h065",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "A custom normaliser updates its running scale in place while the previous forward's division saved it.",
}


class RunningNorm(nn.Module):
    def __init__(self, n, momentum=0.3):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("scale", torch.ones(n, dtype=torch.float64))

    def track(self, x):
        self.scale.mul_(1 - self.momentum).add_(self.momentum * x.pow(2).mean(0))  # GUILTY

    def forward(self, x):
        self.track(x)
        return x / self.scale


class RunningNormOK(RunningNorm):
    def track(self, x):
        self.scale = self.scale * (1 - self.momentum) + self.momentum * x.pow(2).mean(0)


class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x, w1, w2):
        return torch.tanh(self.norm(x @ w1)) @ w2


x = torch.tensor([[0.3, 0.2], [1.0, -0.6], [-0.8, 0.5]], dtype=torch.float64)
y = torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64)


def meta_params():
    return {"lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Norm=RunningNorm):
    net = Net(Norm(2))
    w1 = torch.tensor([[0.8, -0.4], [0.3, 0.6]], dtype=torch.float64, requires_grad=True)
    w2 = torch.tensor([0.5, -0.9], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        loss = (net(x, w1, w2) - y).pow(2).mean()
        g1, g2 = torch.autograd.grad(loss, (w1, w2), create_graph=True)
        w1, w2 = w1 - meta["lr"] * g1, w2 - meta["lr"] * g2
    return (net(x, w1, w2) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, RunningNormOK)
