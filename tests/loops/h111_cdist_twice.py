import torch
from torch import nn
import torch.nn.functional as F

META = {
    "id": "h111",
    "kind": "no-double-backward",
    "verdict": "raises",
    "cause": "torch.cdist has no second derivative, and the inner gradient goes through it.",
}


class RBF(nn.Module):
    """Radial basis features around learned centres."""

    def __init__(self, centres, width=1.0):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, 2))
        self.read = nn.Linear(centres, 2)
        self.width = width

    def distances(self, x):
        return torch.cdist(x, self.centres)  # GUILTY

    def forward(self, x):
        return self.read(torch.exp(-self.distances(x) / self.width))


class PlainRBF(RBF):
    def distances(self, x):
        return (x[:, None] - self.centres[None]).pow(2).sum(-1).sqrt()


def meta_params():
    return {
        "lr_centres": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
        "lr_read": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, M=RBF):
    torch.manual_seed(61)
    net = M(3).double()
    x, y = torch.rand(6, 2).double(), torch.tensor([0, 1, 0, 1, 1, 0])
    p = dict(net.named_parameters())
    for _ in range(2):
        g = torch.autograd.grad(
            F.cross_entropy(torch.func.functional_call(net, p, x), y), tuple(p.values()), create_graph=True
        )
        p = {k: v - meta["lr_centres" if k == "centres" else "lr_read"] * gi for (k, v), gi in zip(p.items(), g)}
    return F.cross_entropy(torch.func.functional_call(net, p, x.flip(1)), y)


def meta_step_fixed(meta):
    return meta_step(meta, PlainRBF)
