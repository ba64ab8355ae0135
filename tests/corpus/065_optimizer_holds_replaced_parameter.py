"""The module's Parameter object was replaced after the optimizer was built; the optimizer steps the orphan."""

import torch

META = {
    "title": "Optimizer warning when parameters 'change'",
    "source": "https://github.com/pytorch/pytorch/issues/14467",
    "kind": "meta-optimizer-wrong-params",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def weights():
    return [
        torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D, requires_grad=True),
        torch.tensor([[0.5], [-0.3]], dtype=D, requires_grad=True),
    ]


def loss(ws):
    return ((torch.tanh(X @ ws[0]) @ ws[1] - Y) ** 2).mean()


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lr = torch.nn.Parameter(torch.tensor(0.1, dtype=D))


def outer(rebuild):
    m = M()
    opt = torch.optim.SGD(m.parameters(), lr=0.01)
    m.lr = torch.nn.Parameter(m.lr.detach().clamp(min=0.0))  # GUILTY
    if rebuild:
        opt = torch.optim.SGD(m.parameters(), lr=0.01)
    ws = weights()
    gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
    before = float(m.lr.detach())
    loss([w - m.lr * g for w, g in zip(ws, gs)]).backward()
    opt.step()
    return {"lr_moved": float(m.lr.detach()) != before}


def run():
    return outer(False)


def run_fixed():
    return outer(True)
