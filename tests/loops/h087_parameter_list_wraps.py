import torch
from torch import nn

META = {
    "id": "h087",
    "kind": "parameter-rewrap",
    "verdict": "cut",
    "cause": "nn.ParameterList turns the updated tensors into new Parameters (leaves).",
}


class Net(nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.ws = nn.ParameterList(tensors)  # GUILTY

    def forward(self, x):
        for w in list(self.ws)[:-1]:
            x = torch.tanh(x @ w)
        return x @ self.ws[-1]


class PlainNet(Net):
    def __init__(self, tensors):
        nn.Module.__init__(self)
        self.ws = tuple(tensors)


x = torch.tensor([[0.2, 0.5, -0.3], [1.0, -0.4, 0.8]], dtype=torch.float64)
y = torch.tensor([[0.4, 0.1], [-0.2, 0.6]], dtype=torch.float64)


def start():
    return [
        torch.sin(torch.arange(9.0, dtype=torch.float64)).view(3, 3).requires_grad_(),
        torch.cos(torch.arange(6.0, dtype=torch.float64)).view(3, 2).requires_grad_(),
    ]


def meta_params():
    return {
        "lr_in": torch.tensor(0.2, dtype=torch.float64, requires_grad=True),
        "lr_out": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, Net=Net):
    net = Net(start())
    for _ in range(2):
        ws = list(net.ws)
        g = torch.autograd.grad((net(x) - y).pow(2).sum(), ws, create_graph=True)
        net = Net([ws[0] - meta["lr_in"] * g[0], ws[1] - meta["lr_out"] * g[1]])
    return (net(x * 0.9) - y).pow(2).sum()


def meta_step_fixed(meta):
    return meta_step(meta, PlainNet)
