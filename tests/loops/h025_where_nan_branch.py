import torch

META = {
    "id": "h025",
    "kind": "nan-where-branch",
    "verdict": "nan",
    "cause": "torch.where hides log of a negative number in the forward but its gradient 0 * inf/nan leaks through.",
}

obs = torch.tensor([-0.5, 0.0, 0.3, 1.2], dtype=torch.float64)


def link(z):
    return torch.where(z > 0, torch.sqrt(z) * torch.log1p(z), torch.zeros_like(z))  # GUILTY


def link_safe(z):
    pos = z > 0
    zz = torch.where(pos, z, torch.ones_like(z))
    return torch.where(pos, torch.sqrt(zz) * torch.log1p(zz), torch.zeros_like(z))


def meta_params():
    return {"eta": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, link=link):
    slope = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)

    def loss(s):
        return (link(s * obs) - obs.abs()).pow(2).sum()

    for _ in range(2):
        g = torch.autograd.grad(loss(slope), slope, create_graph=True)[0]
        slope = slope - meta["eta"] * g
    return loss(slope)


def meta_step_fixed(meta):
    return meta_step(meta, link_safe)
