import torch
import torch.nn as nn

META = {
    "id": "h076",
    "kind": "nan-std",
    "verdict": "nan",
    "cause": "Unbiased standard deviation over a batch of one sample divides by zero.",
}


class Standardise(nn.Module):
    unbiased = True

    def forward(self, h):
        mu = h.mean(0, keepdim=True)
        sd = h.std(0, keepdim=True, unbiased=self.unbiased)  # GUILTY
        return (h - mu) / (sd + 1e-3)


class BiasedStandardise(Standardise):
    def forward(self, h):
        mu = h.mean(0, keepdim=True)
        var = (h - mu).pow(2).mean(0, keepdim=True)
        return (h - mu) / (var + 1e-3).sqrt()


class Net(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.f = nn.Linear(2, 3)
        self.norm = norm
        self.g = nn.Linear(3, 1)

    def forward(self, x):
        return self.g(self.norm(torch.tanh(self.f(x))))


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Norm=Standardise):
    torch.manual_seed(7)
    net = Net(Norm()).double()
    shot_x, shot_y = torch.tensor([[0.5, -0.5]], dtype=torch.float64), torch.tensor([[1.0]], dtype=torch.float64)
    qx = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.2, 0.2]], dtype=torch.float64)
    w = dict(net.named_parameters())
    loss = (torch.func.functional_call(net, w, (shot_x,)) - shot_y).pow(2).mean()
    grads = torch.autograd.grad(loss, list(w.values()), create_graph=True)
    w = {n: p - meta["lr"] * g for (n, p), g in zip(w.items(), grads)}
    return torch.func.functional_call(net, w, (qx,)).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, BiasedStandardise)
