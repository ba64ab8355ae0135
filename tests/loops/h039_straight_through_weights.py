import torch

META = {
    "id": "h039",
    "kind": "straight-through",
    "verdict": "wrong",
    "cause": "The straight-through trick gives the rounded weight the gradient of the unrounded one.",
}


def quantise(w, levels=4):
    q = torch.round(w * levels) / levels
    return w + (q - w).detach()  # GUILTY


def soft_quantise(w, levels=4):
    return w - torch.sin(2 * torch.pi * w * levels) / (4 * torch.pi * levels)


class QuantLinear:
    def __init__(self, quant):
        self.quant = quant
        self.w = torch.tensor([[0.31, -0.62], [0.17, 0.88]], dtype=torch.float64, requires_grad=True)

    def __call__(self, x, w=None):
        return x @ self.quant(self.w if w is None else w)


x = torch.tensor([[1.0, -0.5], [0.4, 1.2], [-0.8, 0.1]], dtype=torch.float64)
y = torch.tensor([[0.5, 0.0], [1.0, 1.0], [0.0, 0.3]], dtype=torch.float64)


def meta_params():
    return {"lr": torch.tensor(0.21, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, quant=quantise):
    lin = QuantLinear(quant)
    g = torch.autograd.grad((lin(x) - y).pow(2).mean(), lin.w, create_graph=True)[0]
    return (lin(x * 1.1, lin.w - meta["lr"] * g) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, soft_quantise)
