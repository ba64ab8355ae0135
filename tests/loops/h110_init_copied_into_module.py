import torch
from torch import nn
from torch.func import functional_call

META = {
    "id": "h110",
    "kind": "no-grad-copy",
    "verdict": "cut",
    "cause": "The learned initialisation is copied into the module's parameters under no_grad.",
}


class Head(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.lin = nn.Linear(d, k)

    def forward(self, x):
        return self.lin(self.norm(x))


def start_from(net, init, link=False):
    if link:
        return {**dict(net.named_parameters()), **{"lin." + k: v for k, v in init.items()}}
    with torch.no_grad():
        net.lin.weight.copy_(init["weight"])  # GUILTY
        net.lin.bias.copy_(init["bias"])  # ALSO
    return dict(net.named_parameters())


def meta_params():
    g = torch.Generator().manual_seed(77)
    return {
        "weight": torch.randn(2, 4, generator=g, dtype=torch.float64).requires_grad_(),
        "bias": torch.randn(2, generator=g, dtype=torch.float64).requires_grad_(),
    }


def episode(meta, link):
    net = Head(4, 2).double()
    x = torch.cos(torch.arange(24, dtype=torch.float64)).view(6, 4)
    y = torch.tensor([0, 1, 1, 0, 1, 0])
    p = start_from(net, meta, link)
    ce = lambda p, i: nn.functional.cross_entropy(functional_call(net, p, (x[i],)), y[i])
    for _ in range(1):
        gs = torch.autograd.grad(ce(p, slice(0, 3)), list(p.values()), create_graph=True)
        p = {k: v - 0.5 * g for (k, v), g in zip(p.items(), gs)}
    return ce(p, slice(3, 6))


def meta_step(meta):
    return episode(meta, link=False)


def meta_step_fixed(meta):
    return episode(meta, link=True)
