import torch

META = {
    "id": "o05",
    "kind": "optimizer-non-leaf",
    "raises": True,
    "cause": "The rate is made by arithmetic on a leaf (non-leaf), so the optimiser refuses it.",
}

A = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)


def meta_step(lr):
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        w = w - lr * torch.autograd.grad((w @ A @ w).log1p(), w, create_graph=True)[0]
    return (w @ A @ w).log1p()


def train(lr):
    opt = torch.optim.SGD([lr], lr=0.1, momentum=0.5)
    trace = []
    for _ in range(5):
        opt.zero_grad()
        loss = meta_step(lr)
        loss.backward()
        opt.step()
        trace.append(loss.item())
    return trace


def run():
    lr = torch.ones(2, dtype=torch.float64, requires_grad=True) * 0.1  # GUILTY
    return train(lr)


def run_fixed():
    lr = (torch.ones(2, dtype=torch.float64) * 0.1).requires_grad_()
    return train(lr)
