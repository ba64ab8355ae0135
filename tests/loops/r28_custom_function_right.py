import torch

META = {"id": "r28", "kind": "custom Function, right and twice differentiable", "verdict": "right"}


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * (s + x * s * (1 - s))


def watch(w, seen):
    w.register_hook(lambda g: seen.append(g.detach().abs().max().item()))
    return w


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    seen = []
    x = torch.tensor([[0.9, -0.2], [0.3, 0.8], [-1.1, 0.5]], dtype=torch.float64)
    y = torch.tensor([0.3, 0.7, -0.2], dtype=torch.float64)
    W = torch.tensor([[0.4, -0.6], [0.3, 0.2]], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([0.7, -0.5], dtype=torch.float64, requires_grad=True)
    loss = lambda W, v: (Swish.apply(x @ W) @ v - y).pow(2).mean()
    for _ in range(2):
        gW, gv = torch.autograd.grad(loss(W, v), (W, v), create_graph=True)
        W, v = watch(W - meta["lr"] * gW, seen), watch(v - meta["lr"] * gv, seen)
    return loss(W, v)
