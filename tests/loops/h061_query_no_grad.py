import torch

META = {
    "id": "h061",
    "kind": "no-grad-meta-loss",
    "verdict": "cut",
    "params": ["lr"],
    "cause": "The validation part of the outer loss is computed by an evaluation helper under no_grad.",
}

tr = torch.tensor([[0.0, 0.1], [1.0, 0.9], [2.0, 2.3]], dtype=torch.float64)
va = torch.tensor([[0.5, 0.4], [1.5, 1.7]], dtype=torch.float64)


def curve(c, x):
    return c[0] + c[1] * x + torch.exp(c[2] * x) - 1


def fit_loss(c, d):
    return (curve(c, d[:, 0]) - d[:, 1]).pow(2).mean()


@torch.no_grad()  # GUILTY
def validate(c):  # ALSO
    return fit_loss(c, va)


def validate_grad(c):
    return fit_loss(c, va)


def meta_params():
    return {
        "lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "prior": torch.tensor([0.2, 0.5, 0.1], dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, validate=validate):
    c = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        c = c - meta["lr"] * torch.autograd.grad(fit_loss(c, tr), c, create_graph=True)[0]
    return validate(c) + 0.05 * meta["prior"].square().sum()


def meta_step_fixed(meta):
    return meta_step(meta, validate_grad)
