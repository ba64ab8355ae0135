import torch
from torch import nn

META = {
    "id": "h045",
    "kind": "frozen-parameter",
    "verdict": "raises",
    "cause": "autograd.grad is given all parameters although the backbone is frozen.",
}


class Finetuner(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(14)
        self.backbone = nn.Sequential(nn.Linear(2, 4), nn.Tanh())
        self.head = nn.Linear(4, 1)
        self.double()
        for p in self.backbone.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.head(self.backbone(x))

    def to_adapt(self):
        return dict(self.named_parameters())  # GUILTY


class HeadOnly(Finetuner):
    def to_adapt(self):
        return {n: p for n, p in self.named_parameters() if p.requires_grad}


x = torch.tensor([[0.5, 1.0], [-1.0, 0.3], [0.8, -0.2]], dtype=torch.float64)
y = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, cls=Finetuner):
    net = cls()
    fast = net.to_adapt()
    for _ in range(2):
        loss = nn.functional.mse_loss(torch.func.functional_call(net, fast, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)  # ALSO
        fast = {n: w - meta["lr"] * g for (n, w), g in zip(fast.items(), grads)}
    return nn.functional.mse_loss(torch.func.functional_call(net, fast, (x + 0.1,)), y)


def meta_step_fixed(meta):
    return meta_step(meta, HeadOnly)
