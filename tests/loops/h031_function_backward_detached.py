import torch

META = {
    "id": "h031",
    "kind": "custom-function-wrong-backward",
    "verdict": "wrong",
    "cause": "The custom op keeps its input as a detached attribute, so its backward is treated as constant in the second pass.",
}


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach()  # GUILTY
        return x**3

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.x**2 * g


class CubeSaved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g


feats = torch.tensor([[0.2, 1.0], [-0.7, 0.5], [0.9, -0.4]], dtype=torch.float64)
resp = torch.tensor([0.1, -0.3, 0.6], dtype=torch.float64)


def mloss(w, cube):
    return (cube(feats @ w) - resp).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.25, dtype=torch.float64, requires_grad=True)}


def run_inner(lr, cube):
    w = torch.tensor([0.9, -0.5], dtype=torch.float64, requires_grad=True)
    i = 0
    while i < 3:
        g = torch.autograd.grad(mloss(w, cube), w, create_graph=True)[0]
        w = w - lr * g
        i += 1
    return mloss(w, cube)


def meta_step(meta):
    return run_inner(meta["lr"], Cube.apply)


def meta_step_fixed(meta):
    return run_inner(meta["lr"], CubeSaved.apply)
