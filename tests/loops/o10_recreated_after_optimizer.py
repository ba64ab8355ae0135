import torch
from torch import nn

META = {
    "id": "o10",
    "kind": "optimizer-holds-stale",
    "cause": "reset_rates() makes new Parameters after the optimiser was built from the old ones.",
}


class Meta(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = nn.ParameterDict({"w": nn.Parameter(torch.tensor(0.01)), "b": nn.Parameter(torch.tensor(0.01))})

    def reset_rates(self, value):
        for k in list(self.rates.keys()):
            self.rates[k] = nn.Parameter(torch.tensor(value))  # GUILTY

    def forward(self):
        w, b = torch.tensor([0.4, 0.1], requires_grad=True), torch.tensor(0.3, requires_grad=True)
        x = torch.tensor([[1.0, 0.5], [-0.2, 0.9]])
        f = lambda w, b: (torch.sigmoid(x @ w + b) - torch.tensor([0.9, 0.2])).pow(2).sum()
        for _ in range(2):
            gw, gb = torch.autograd.grad(f(w, b), (w, b), create_graph=True)
            w, b = w - self.rates["w"] * gw, b - self.rates["b"] * gb
        return f(w, b)


class MetaFixed(Meta):
    def reset_rates(self, value):
        with torch.no_grad():
            for p in self.rates.values():
                p.fill_(value)


def run(cls=Meta):
    meta = cls()
    opt = torch.optim.SGD(meta.parameters(), lr=1.0)
    meta.reset_rates(0.5)
    trace = []
    for _ in range(5):
        opt.zero_grad()
        loss = meta()
        loss.backward()
        opt.step()
        trace.append((loss.item(), meta.rates["w"].item()))
    return trace


def run_fixed():
    return run(MetaFixed)
