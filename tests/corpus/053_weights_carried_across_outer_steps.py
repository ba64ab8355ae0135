"""Outer step 2 starts from the adapted tensors of step 1, whose graph was freed by step 1's backward."""

import torch

META = {
    "title": "Is LearnableOptimizer compatible with MAML?",
    "source": "https://github.com/learnables/learn2learn/issues/381",
    "kind": "graph-carried-over",
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


def outer(detach):
    lr = torch.tensor(0.1, dtype=D, requires_grad=True)
    opt = torch.optim.SGD([lr], lr=1e-3)
    ws = weights()
    for _ in range(2):
        if detach:
            ws = [w.detach().requires_grad_() for w in ws]
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - lr * g for w, g in zip(ws, gs)]  # GUILTY
        opt.zero_grad()
        loss(ws).backward()
        opt.step()
    return float(lr.detach())


def run():
    return {"lr": outer(False)}


def run_fixed():
    return {"lr": outer(True)}
