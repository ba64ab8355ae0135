import torch
from torch import nn

META = {
    "id": "h102",
    "kind": "parameter-rewrap",
    "verdict": "cut",
    "cause": "The constructor wraps the learned rates in nn.Parameter: a new leaf that is not the meta-parameter.",
}


class MetaSGD(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.alpha = nn.Parameter(alpha)  # GUILTY

    def forward(self, x, w, b):
        return torch.cos(x @ w.t() + b)

    def adapt(self, x, y, steps):
        w, b = self.body.weight, self.body.bias
        for _ in range(steps):
            gw, gb = torch.autograd.grad((self(x, w, b) - y).abs().mean(), (w, b), create_graph=True)
            w, b = w - self.alpha * gw, b - self.alpha * gb
        return w, b


class MetaSGDFixed(MetaSGD):
    def __init__(self, alpha):
        nn.Module.__init__(self)
        self.body = nn.Linear(3, 3)
        self.alpha = alpha.view(3)


def meta_params():
    return {"alpha": torch.tensor([0.2, 0.1, 0.3], dtype=torch.float64, requires_grad=True)}


def meta_step(meta, cls=MetaSGD):
    torch.manual_seed(64)
    learner = cls(meta["alpha"]).double()
    x, y = torch.randn(5, 3).double(), torch.rand(5, 3).double()
    return (learner(x, *learner.adapt(x, y, 3)) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, MetaSGDFixed)
