import torch
import torch.nn as nn

META = {
    "id": "h089",
    "kind": "data-read",
    "verdict": "wrong",
    "cause": "The nested layer divides by the norm of self.weight.data, which takes the norm out of the graph.",
}


class UnitLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i))

    def length(self):
        return self.weight.data.norm(dim=1, keepdim=True)  # GUILTY

    def forward(self, x):
        return nn.functional.linear(x, self.weight / self.length())


class UnitLinearOK(UnitLinear):
    def length(self):
        return self.weight.norm(dim=1, keepdim=True)


def build(L):
    torch.manual_seed(70)
    return nn.Sequential(L(3, 4), nn.Tanh(), nn.Sequential(L(4, 4), nn.Tanh()), nn.Linear(4, 1)).double()


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, L=UnitLinear):
    net = build(L)
    x = torch.tensor([[0.2, -0.4, 0.9], [1.1, 0.3, -0.6], [-0.5, 0.8, 0.1]], dtype=torch.float64)
    y = torch.tensor([[0.3], [-0.7], [1.0]], dtype=torch.float64)
    p = {k: v for k, v in net.named_parameters()}
    for _ in range(2):
        l = (torch.func.functional_call(net, p, (x,)) - y).pow(2).mean()
        g = torch.autograd.grad(l, list(p.values()), create_graph=True)
        p = {k: v - meta["lr"] * gi for (k, v), gi in zip(p.items(), g)}
    return (torch.func.functional_call(net, p, (x * 1.2,)) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, UnitLinearOK)
