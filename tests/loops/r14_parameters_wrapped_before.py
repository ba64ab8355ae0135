import torch
from torch import nn

META = {"id": "r14", "kind": "Parameters wrapped before the loop", "verdict": "right"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        w = torch.tensor([[0.2, -0.7], [0.5, 0.1]], dtype=torch.float64)
        self.w = nn.Parameter(w.clone())
        self.register_parameter("v", nn.Parameter(torch.tensor([0.3, 0.8], dtype=torch.float64)))
        setattr(self, "c", nn.Parameter(torch.zeros((), dtype=torch.float64)))

    def forward(self, x):
        return torch.tanh(x @ self.w) @ self.v + self.c


def meta_params():
    return {"lr": nn.Parameter(torch.tensor(0.4, dtype=torch.float64))}


def meta_step(meta):
    net = Net()
    x = torch.tensor([[1.0, 0.0], [0.2, -0.8], [0.5, 0.5]], dtype=torch.float64)
    y = torch.tensor([0.5, -0.1, 0.3], dtype=torch.float64)
    loss = lambda: (net(x) - y).pow(2).mean()
    for _ in range(2):
        named = [(n, getattr(net, n)) for n in ("w", "v", "c")]
        gs = torch.autograd.grad(loss(), [t for _, t in named], create_graph=True)
        for (n, t), g in zip(named, gs):
            if n in net._parameters:
                del net._parameters[n]
            setattr(net, n, t - meta["lr"] * g)
    return loss()
