import torch
from torch import nn

META = {
    "id": "h056",
    "kind": "detach",
    "verdict": "wrong",
    "cause": "The recurrent model detaches its hidden state inside forward, so gradients through time are lost.",
}


class Tagger(nn.Module):
    cut = True

    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(1, 3)
        self.out = nn.Linear(3, 1)

    def forward(self, seq):
        h = torch.zeros(seq.size(1), 3, dtype=seq.dtype)
        preds = []
        for x_t in seq:
            if self.cut:
                h = h.detach()  # GUILTY
            h = self.cell(x_t, h)
            preds.append(self.out(h))
        return torch.stack(preds)


class FullTagger(Tagger):
    cut = False


def data():
    s = torch.sin(torch.arange(24, dtype=torch.float64) / 2).view(6, 4, 1)
    return s[:-1], s[1:] ** 2


def meta_params():
    return {"lr": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, T=Tagger):
    torch.manual_seed(23)
    m = T().double()
    x, y = data()
    ps = dict(m.named_parameters())
    crit = lambda ps: (torch.func.functional_call(m, ps, (x,)) - y).pow(2).mean()
    for _ in range(2):
        gs = torch.autograd.grad(crit(ps), list(ps.values()), create_graph=True)
        ps = {n: p - meta["lr"] * g for (n, p), g in zip(ps.items(), gs)}
    return crit(ps)


def meta_step_fixed(meta):
    return meta_step(meta, FullTagger)
