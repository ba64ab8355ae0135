import torch
from torch.utils.checkpoint import checkpoint

META = {
    "id": "h073",
    "kind": "checkpointing",
    "verdict": "raises",
    "cause": "Reentrant checkpointing does not work with autograd.grad in the inner loop.",
}


class DeepNet:
    reentrant = True

    def block(self, x, w, b):
        return torch.tanh(x @ w + b) + x

    def __call__(self, x, params):
        for w, b in zip(params[::2], params[1::2]):
            x = checkpoint(self.block, x, w, b, use_reentrant=self.reentrant)  # GUILTY
        return x.sum(-1)


class DeepNetNew(DeepNet):
    reentrant = False


def weights(width, depth):
    g = torch.Generator().manual_seed(33)
    out = []
    for _ in range(depth):
        out += [
            torch.randn(width, width, generator=g, dtype=torch.float64).requires_grad_(),
            torch.zeros(width, dtype=torch.float64, requires_grad=True),
        ]
    return out


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Net=DeepNet):
    net = Net()
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3).requires_grad_()
    y = torch.tensor([0.1, 0.9, -0.5, 0.4], dtype=torch.float64)
    ws = weights(3, 2)
    for _ in range(2):
        gs = torch.autograd.grad((net(x, ws) - y).pow(2).mean(), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return (net(x, ws) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, DeepNetNew)
