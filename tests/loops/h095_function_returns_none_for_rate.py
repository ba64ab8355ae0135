import torch

META = {
    "id": "h095",
    "kind": "custom-function-wrong-backward",
    "verdict": "cut",
    "params": ["lr"],
    "cause": "The fused update's backward returns None for the rate although the rate is an input.",
}


class FusedStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, g, lr, wd):
        ctx.save_for_backward(w, g, lr, wd)
        return w - lr * (g + wd * w)

    @staticmethod
    def backward(ctx, go):
        w, g, lr, wd = ctx.saved_tensors
        return go * (1 - lr * wd), -lr * go, None, -(lr * w * go).sum()  # GUILTY


class FusedStepOK(FusedStep):
    @staticmethod
    def backward(ctx, go):
        w, g, lr, wd = ctx.saved_tensors
        return go * (1 - lr * wd), -lr * go, -((g + wd * w) * go).sum(), -(lr * w * go).sum()


def valley(w):
    return (w[0] - w[1] ** 2) ** 2 + 0.1 * (w - 1).pow(4).sum()


def meta_params():
    return {
        "lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "wd": torch.tensor(0.05, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, step=FusedStep.apply):
    w = torch.tensor([1.5, 0.4], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        g = torch.autograd.grad(valley(w), w, create_graph=True)[0]
        w = step(w, g, meta["lr"], meta["wd"])
    return valley(w)


def meta_step_fixed(meta):
    return meta_step(meta, FusedStepOK.apply)
