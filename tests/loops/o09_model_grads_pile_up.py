import torch
from torch import nn

META = {
    "id": "o09",
    "kind": "model-grads-accumulate",
    "cause": "The inner gradient is read from p.grad after backward; only the meta-optimiser is cleared, so p.grad sums over outer steps.",
}


def inner_update(model, meta_lr, x, y, clear):
    if clear:
        model.zero_grad()
    nn.functional.mse_loss(model(x), y).backward(inputs=list(model.parameters()))  # GUILTY
    return {n: p.detach() - meta_lr * p.grad.clone() for n, p in model.named_parameters()}


def train(clear):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    lr = torch.tensor(0.1, requires_grad=True)
    opt = torch.optim.SGD([lr], lr=0.05)
    x, y = torch.randn(8, 2), torch.randn(8, 1)
    norms = []
    for _ in range(6):
        opt.zero_grad()
        fast = inner_update(model, lr, x, y, clear)
        norms.append(sum(p.grad.norm() for p in model.parameters()).item())
        nn.functional.mse_loss(torch.func.functional_call(model, fast, (x,)), y).backward()
        opt.step()
    return norms


def run():
    return train(clear=False)


def run_fixed():
    return train(clear=True)
