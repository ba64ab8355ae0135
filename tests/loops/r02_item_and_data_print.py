import io
import torch
from torch import nn

META = {"id": "r02", "kind": "item and .data only printed", "verdict": "right"}


class Adapter:
    def __init__(self, net, lr, out):
        self.net, self.lr, self.out = net, lr, out

    def report(self, k, loss, fast):
        biggest = max(v.data.abs().max().item() for v in fast.values())
        print(
            f"step {k} loss {loss.item():.3f} lr {self.lr.item():.4f} max|w| {biggest:.3f} {self.lr.tolist()}",
            file=self.out,
        )

    def __call__(self, x, y, steps):
        fast = dict(self.net.named_parameters())
        for k in range(steps):
            loss = nn.functional.mse_loss(torch.func.functional_call(self.net, fast, (x,)), y)
            self.report(k, loss, fast)
            g = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {n: p - self.lr * gi for (n, p), gi in zip(fast.items(), g)}
        return fast


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x, y = torch.randn(6, 2).double(), torch.randn(6, 1).double()
    fast = Adapter(net, meta["lr"], io.StringIO())(x[:3], y[:3], 2)
    return nn.functional.mse_loss(torch.func.functional_call(net, fast, (x[3:],)), y[3:])
