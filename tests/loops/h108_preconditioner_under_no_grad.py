import torch
from torch import nn

META = {
    "id": "h108",
    "kind": "no-grad-update",
    "verdict": "cut",
    "params": ["scale", "mix"],
    "cause": "The learned preconditioner's __call__ wraps its body in no_grad.",
}


class Precond:
    def __init__(self, scale, mix):
        self.scale, self.mix = scale, mix

    def direction(self, g):
        return self.scale.exp() * (g + torch.tanh(g @ self.mix))

    def __call__(self, g):
        with torch.no_grad():  # GUILTY
            return self.direction(g)


class GraphPrecond(Precond):
    def __call__(self, g):
        return self.direction(g)


class Problem(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer(
            "M", torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 0.7]], dtype=torch.float64)
        )

    def forward(self, w):
        return 0.5 * w @ self.M @ w - torch.sin(w).sum()


def meta_params():
    return {
        "scale": torch.tensor([-1.0, -1.5, -0.5], dtype=torch.float64, requires_grad=True),
        "mix": torch.tensor(
            [[0.1, 0.0, 0.2], [0.0, 0.3, -0.1], [0.2, -0.1, 0.0]], dtype=torch.float64, requires_grad=True
        ),
        "init": torch.tensor([1.0, -0.5, 0.8], dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, P=Precond):
    rule, prob = P(meta["scale"], meta["mix"]), Problem()
    w = meta["init"] * 1
    for _ in range(3):
        w = w - rule(torch.autograd.grad(prob(w), w, create_graph=True)[0])
    return prob(w)


def meta_step_fixed(meta):
    return meta_step(meta, GraphPrecond)
