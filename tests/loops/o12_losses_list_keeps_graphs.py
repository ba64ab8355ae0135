import torch
from torch import nn

META = {
    "id": "o12",
    "kind": "memory-growth",
    "cause": "The history holds the loss tensors themselves, so every outer step's graph stays alive.",
}


class History:
    def __init__(self):
        self.losses = []

    def add(self, loss):
        self.losses.append(loss)  # GUILTY

    def alive(self):
        return sum(torch.is_tensor(l) and l.grad_fn is not None for l in self.losses)

    def mean(self):
        return float(sum(float(l) for l in self.losses) / len(self.losses))


class FloatHistory(History):
    def add(self, loss):
        self.losses.append(loss.item())


def run(H=History):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    lr = nn.Parameter(torch.tensor(0.05))
    opt = torch.optim.Adam([lr], lr=0.01)
    hist, alive = H(), []
    for it in range(6):
        x, y = torch.randn(16, 3), torch.randn(16, 1)
        p = dict(net.named_parameters())
        f = lambda p: nn.functional.mse_loss(torch.func.functional_call(net, p, (x,)), y)
        g = torch.autograd.grad(f(p), list(p.values()), create_graph=True)
        loss = f({k: v - lr * gi for (k, v), gi in zip(p.items(), g)})
        opt.zero_grad()
        (grad,) = torch.autograd.grad(loss, [lr])
        lr.grad = grad
        opt.step()
        hist.add(loss)
        alive.append(hist.alive())
    return alive


def run_fixed():
    return run(FloatHistory)
