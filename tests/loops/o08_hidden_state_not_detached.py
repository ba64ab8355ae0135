import torch
from torch import nn

META = {
    "id": "o08",
    "kind": "graph-carried-over",
    "raises": True,
    "cause": "The learned optimiser's hidden state is carried to the next unroll without being detached.",
}


class LearnedOpt(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.rnn = nn.GRUCell(1, 3)
        self.out = nn.Linear(3, 1)
        self.h = None

    def forward(self, g):
        self.h = self.rnn(g.detach()[:, None], self.h)
        return 0.1 * self.out(self.h).squeeze(1)

    def end_of_unroll(self):
        self.h.detach()  # GUILTY


class LearnedOptOK(LearnedOpt):
    def end_of_unroll(self):
        self.h = self.h.detach()


def f(x):
    return (x - torch.tensor([1.0, -1.0])).pow(2).sum()


def run(cls=LearnedOpt):
    lo = cls()
    meta_opt = torch.optim.Adam(lo.parameters(), lr=1e-2)
    x = torch.zeros(2)
    hist = []
    for unroll in range(4):
        x = x.detach().requires_grad_()
        total = 0
        for _ in range(3):
            val = f(x)
            g = torch.autograd.grad(val, x, retain_graph=True)[0]
            x = x + lo(g)
            total = total + f(x)
        meta_opt.zero_grad()
        total.backward()
        meta_opt.step()
        lo.end_of_unroll()
        hist.append(total.item())
    return hist


def run_fixed():
    return run(LearnedOptOK)
