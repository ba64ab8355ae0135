import torch
from torch.autograd.function import once_differentiable

META = {
    "id": "h030",
    "kind": "no-double-backward",
    "verdict": "cut",
    "cause": "The custom loss is once_differentiable, but the penalty weight is inside it and needs a second derivative.",
}


class RobustLoss(torch.autograd.Function):
    """sum log(1 + c r^2)"""

    @staticmethod
    def forward(ctx, r, c):
        ctx.save_for_backward(r, c)
        return torch.log1p(c * r * r).sum()

    @staticmethod
    @once_differentiable  # GUILTY
    def backward(ctx, go):  # ALSO
        r, c = ctx.saved_tensors
        d = 1 + c * r * r
        return go * 2 * c * r / d, go * (r * r / d).sum()


class RobustLossTwice(RobustLoss):
    @staticmethod
    def backward(ctx, go):
        r, c = ctx.saved_tensors
        d = 1 + c * r * r
        return go * 2 * c * r / d, go * (r * r / d).sum()


t = torch.linspace(0, 1, 6, dtype=torch.float64)
obs = 2 * t + torch.tensor([0, 0, 3.0, 0, 0, 0], dtype=torch.float64)


def meta_params():
    return {"c": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, rho=RobustLoss.apply):
    slope = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        (g,) = torch.autograd.grad(rho(slope * t - obs, meta["c"]), slope, create_graph=True)
        slope = slope - 0.1 * g
    return (slope - 2) ** 2


def meta_step_fixed(meta):
    return meta_step(meta, RobustLossTwice.apply)
