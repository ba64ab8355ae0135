import torch
from torch.autograd.function import Function, once_differentiable

META = {
    "id": "h080",
    "kind": "no-double-backward",
    "verdict": "wrong",
    "cause": "A custom activation marked once_differentiable sits in a hidden layer of the initialisation being learned.",
}


class FastGelu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(1.702 * x)

    @staticmethod
    @once_differentiable  # GUILTY
    def backward(ctx, g):  # ALSO
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(1.702 * x)
        return g * (s + 1.702 * x * s * (1 - s))


def plain_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def mlp(p, x, act):
    return act(act(x @ p["l1"]) @ p["l2"]).sum(1)


def meta_params():
    g = torch.Generator().manual_seed(44)
    return {k: torch.randn(3, 3, generator=g, dtype=torch.float64).requires_grad_() for k in ("l1", "l2")}


def meta_step(meta, act=FastGelu.apply):
    x = torch.eye(3, dtype=torch.float64) + 0.2
    p = meta
    for _ in range(2):
        loss = (mlp(p, x, act) - 1).pow(2).mean()
        gs = torch.autograd.grad(loss, list(p.values()), create_graph=True)
        p = {k: w - 0.1 * g for (k, w), g in zip(p.items(), gs)}
    return (mlp(p, x.flip(0), act) - 1).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, plain_gelu)
