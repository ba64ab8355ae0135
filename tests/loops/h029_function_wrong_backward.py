import torch
from torch.autograd import Function

META = {
    "id": "h029",
    "kind": "custom-function-wrong-backward",
    "verdict": "wrong",
    "cause": "The hand-written backward of softsign forgets the square.",
}


class SoftSign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, gy):
        (x,) = ctx.saved_tensors
        return gy / (1 + x.abs())  # GUILTY


class SoftSignOK(SoftSign):
    @staticmethod
    def backward(ctx, gy):
        (x,) = ctx.saved_tensors
        return gy / (1 + x.abs()) ** 2


class Net(torch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act
        self.a = torch.nn.Linear(2, 3)
        self.b = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.b(self.act(self.a(x)))


def make(act):
    torch.manual_seed(2)
    return Net(act).double()


def meta_params():
    return {"lr": torch.tensor([0.3, 0.2, 0.3, 0.2], dtype=torch.float64, requires_grad=True)}


def meta_step(meta, act=SoftSign.apply):
    net = make(act)
    x = torch.tensor([[0.5, -2.0], [1.0, 1.0], [-0.3, 0.4]], dtype=torch.float64)
    t = x.sum(1, keepdim=True)
    ps = dict(net.named_parameters())
    for _ in range(2):
        l = (torch.func.functional_call(net, ps, x) - t).pow(2).mean()
        gs = torch.autograd.grad(l, [*ps.values()], create_graph=True)
        ps = {k: p - r * g for (k, p), r, g in zip(ps.items(), meta["lr"], gs)}
    return (torch.func.functional_call(net, ps, x * 0.8) - t).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, SoftSignOK.apply)
