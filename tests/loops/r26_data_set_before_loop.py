import torch
from torch import nn

META = {"id": "r26", "kind": ".data initialisation before the loop", "verdict": "right"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.Linear(3, 1)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(torch.sin(torch.arange(p.numel(), dtype=p.dtype) + i).view_as(p))
        self.a.bias.data.zero_()
        self.b.bias.data = torch.full((1,), 0.1)

    def forward(self, x, p=None):
        if p is None:
            return self.b(torch.tanh(self.a(x)))
        h = torch.tanh(nn.functional.linear(x, p["a.weight"], p["a.bias"]))
        return nn.functional.linear(h, p["b.weight"], p["b.bias"])


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    net = Net().double()
    x = torch.tensor([[0.2, 0.4], [-1.0, 0.6], [0.9, -0.3]], dtype=torch.float64)
    y = torch.tensor([[0.2], [0.9], [-0.5]], dtype=torch.float64)
    p = None
    for _ in range(2):
        src = p or dict(net.named_parameters())
        g = torch.autograd.grad((net(x, p) - y).pow(2).mean(), list(src.values()), create_graph=True)
        p = {k: v - meta["lr"] * gi for (k, v), gi in zip(src.items(), g)}
    return (net(x, p) - y).pow(2).mean()
