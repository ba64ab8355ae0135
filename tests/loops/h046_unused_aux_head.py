import torch
from torch import nn
from torch.func import functional_call

META = {
    "id": "h046",
    "kind": "unused-parameter",
    "verdict": "raises",
    "cause": "The auxiliary head takes no part in the support loss, and autograd.grad refuses it.",
}


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 4)
        self.main = nn.Linear(4, 1)
        self.aux = nn.Linear(4, 2)

    def forward(self, x, which="main"):
        h = nn.functional.silu(self.trunk(x))
        return getattr(self, which)(h)


def setup():
    torch.manual_seed(5)
    net = TwoHeads().double()
    return net, torch.randn(6, 3).double(), torch.randn(6, 1).double()


def meta_params():
    return {"eta": torch.tensor(0.15, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    net, x, y = setup()
    p = dict(net.named_parameters())
    for _ in range(2):
        loss = (functional_call(net, p, (x,)) - y).pow(2).mean()
        g = torch.autograd.grad(loss, list(p.values()), create_graph=True)  # GUILTY
        p = {k: v - meta["eta"] * gi for (k, v), gi in zip(p.items(), g)}
    return (functional_call(net, p, (x,)) - y).abs().mean()


def meta_step_fixed(meta):
    net, x, y = setup()
    p = dict(net.named_parameters())
    for _ in range(2):
        loss = (functional_call(net, p, (x,)) - y).pow(2).mean()
        g = torch.autograd.grad(loss, list(p.values()), create_graph=True, allow_unused=True, materialize_grads=True)
        p = {k: v - meta["eta"] * gi for (k, v), gi in zip(p.items(), g)}
    return (functional_call(net, p, (x,)) - y).abs().mean()
