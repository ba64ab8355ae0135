import torch
import torch.nn as nn

META = {
    "id": "h020",
    "kind": "buffer-copy",
    "verdict": "raises",
    "cause": "copy_ into a registered buffer overwrites the weight saved by the previous inner step.",
}


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.tensor([0.6, -0.2, 0.3, 0.1], dtype=torch.float64)
        self.register_buffer("taps", base.clone().requires_grad_().clone())

    def forward(self, sig):
        return torch.tanh(nn.functional.conv1d(sig, self.taps.view(1, 1, -1)))

    def learn(self, sig, want, lr):
        err = (self(sig) - want).pow(2).mean()
        (g,) = torch.autograd.grad(err, self.taps, create_graph=True)
        self.taps.copy_(self.taps - lr * g)  # GUILTY


class FilterOK(Filter):
    def learn(self, sig, want, lr):
        err = (self(sig) - want).pow(2).mean()
        (g,) = torch.autograd.grad(err, self.taps, create_graph=True)
        self.taps = self.taps - lr * g


SIG = torch.cos(torch.arange(20, dtype=torch.float64) * 0.5).view(1, 1, -1)
WANT = torch.sin(torch.arange(17, dtype=torch.float64) * 0.5).view(1, 1, -1)


def meta_params():
    return {"mu": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, F=Filter):
    flt = F()
    for _ in range(3):
        flt.learn(SIG, WANT, meta["mu"])
    return (flt(SIG.flip(-1)) - WANT).abs().mean()


def meta_step_fixed(meta):
    return meta_step(meta, FilterOK)
