import torch
import torch.nn as nn

META = {
    "id": "h048",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "An in-place ReLU after tanh overwrites the output that tanh saved for backward.",
}


class Stem(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.lin = nn.Linear(3, 5)
        self.squash = nn.Tanh()
        self.gate = nn.ReLU(inplace=inplace)

    def forward(self, x):
        h = self.squash(self.lin(x))
        return self.gate(h)  # GUILTY


class Model(nn.Module):
    def __init__(self, inplace=True):
        super().__init__()
        self.stem = Stem(inplace)
        self.top = nn.Linear(5, 1)

    def forward(self, x):
        return self.top(self.stem(x)).squeeze(1)


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, inplace=True):
    torch.manual_seed(19)
    net = Model(inplace).double()
    x, y = torch.randn(7, 3).double(), torch.randn(7).double()
    w = dict(net.named_parameters())
    loss = lambda w: nn.functional.mse_loss(torch.func.functional_call(net, w, x), y)
    for _ in range(2):
        g = torch.autograd.grad(loss(w), list(w.values()), create_graph=True)
        w = {k: v - meta["lr"] * gi for (k, v), gi in zip(w.items(), g)}
    return loss(w)


def meta_step_fixed(meta):
    return meta_step(meta, inplace=False)
