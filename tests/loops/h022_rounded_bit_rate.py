import torch

META = {
    "id": "h022",
    "kind": "zero-gradient-op",
    "verdict": "independent",
    "params": ["decades"],
    "cause": "torch.round makes the exponent of the rate piecewise constant.",
}


class DecadeRate(torch.nn.Module):
    """rate = mantissa * 10 ** round(decades)"""

    def forward(self, mantissa, decades):
        exponent = torch.round(decades)  # GUILTY
        return mantissa * 10**exponent


class SmoothRate(torch.nn.Module):
    def forward(self, mantissa, decades):
        return mantissa * 10**decades


x = torch.tensor([0.2, 0.5, 0.9, 1.4], dtype=torch.float64)


def misfit(a, k):
    return (a * torch.exp(-k * x) - torch.tensor([1.8, 1.5, 1.1, 0.8], dtype=torch.float64)).pow(2).sum()


def meta_params():
    return {
        "mantissa": torch.tensor(0.8, dtype=torch.float64, requires_grad=True),
        "decades": torch.tensor(-1.3, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, schedule=DecadeRate()):
    lr = schedule(meta["mantissa"], meta["decades"])
    a = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    k = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        ga, gk = torch.autograd.grad(misfit(a, k), [a, k], create_graph=True)
        a, k = a - lr * ga, k - lr * gk
    return misfit(a, k)


def meta_step_fixed(meta):
    return meta_step(meta, SmoothRate())
