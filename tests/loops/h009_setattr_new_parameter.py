import torch
import torch.nn as nn

META = {
    "id": "h009",
    "kind": "parameter-rewrap",
    "verdict": "cut",
    "cause": "nn.Parameter(new_value) makes a fresh leaf, so the updated weight forgets the rate.",
}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Parameter(torch.eye(width, dtype=torch.float64) * 0.7 + 0.1)
        self.scale = nn.Parameter(torch.ones(width, dtype=torch.float64))

    def forward(self, x):
        return torch.tanh(x @ self.w) * self.scale


def inputs():
    a = torch.arange(12, dtype=torch.float64).view(4, 3) / 6 - 1
    return a, a.pow(2)


def meta_params():
    return {"eta": torch.tensor(0.4, dtype=torch.float64, requires_grad=True)}


def update(block, eta, loss):
    names = [n for n, _ in block.named_parameters()]
    grads = torch.autograd.grad(loss, list(block.parameters()), create_graph=True)
    for name, g in zip(names, grads):
        old = getattr(block, name)
        setattr(block, name, nn.Parameter(old - eta * g))  # GUILTY


def update_fixed(block, eta, loss):
    names = [n for n, _ in block.named_parameters()]
    grads = torch.autograd.grad(loss, list(block.parameters()), create_graph=True)
    for name, g in zip(names, grads):
        old = getattr(block, name)
        delattr(block, name)
        setattr(block, name, old - eta * g)


def meta_step(meta, upd=update):
    blk = Block(3)
    x, t = inputs()
    upd(blk, meta["eta"], ((blk(x) - t) ** 2).sum())
    return ((blk(x.flip(0)) - t.flip(1)) ** 2).sum()


def meta_step_fixed(meta):
    return meta_step(meta, update_fixed)
