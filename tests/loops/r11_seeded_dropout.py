import torch

META = {"id": "r11", "kind": "dropout with a seeded generator", "verdict": "right"}


class Dropout:
    def __init__(self, p, seed):
        self.p, self.gen = p, torch.Generator().manual_seed(seed)

    def __call__(self, h):
        with torch.no_grad():
            keep = torch.bernoulli(torch.full_like(h, 1 - self.p), generator=self.gen)
        return h * keep / (1 - self.p)


x = torch.linspace(-1, 1, 15, dtype=torch.float64).view(5, 3)
y = x.sum(1).sin()


def net(w, drop):
    return drop(torch.relu(x @ w[0] + 0.2)) @ w[1]


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    drop = Dropout(0.4, seed=123)
    torch.manual_seed(0)
    w = [
        torch.randn(3, 8, dtype=torch.float64, requires_grad=True),
        torch.randn(8, dtype=torch.float64, requires_grad=True),
    ]
    for _ in range(3):
        g = torch.autograd.grad((net(w, drop) - y).pow(2).mean(), w, create_graph=True)
        w = [a - meta["lr"] * b for a, b in zip(w, g)]
    return (net(w, lambda h: h) - y).pow(2).mean()
