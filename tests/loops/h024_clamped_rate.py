import torch

META = {
    "id": "h024",
    "kind": "saturated-clamp",
    "verdict": "independent",
    "cause": "The rate is clamped to a ceiling below its value: its gradient is exactly zero.",
}

LR_MIN, LR_MAX = 1e-5, 0.1


def get_lr(cfg, meta):
    lr = meta["lr"]
    if cfg["clamp"]:
        lr = lr.clamp(LR_MIN, LR_MAX)  # GUILTY
    return lr


def meta_params():
    return {"lr": torch.tensor(0.25, requires_grad=True)}


def _step(meta, cfg):
    torch.manual_seed(cfg["seed"])
    x, y = torch.randn(9, 2), torch.randn(9)
    w = torch.randn(2, requires_grad=True)
    for _ in range(cfg["inner_steps"]):
        l = ((x @ w).sin() - y).pow(2).mean()
        w = w - get_lr(cfg, meta) * torch.autograd.grad(l, w, create_graph=True)[0]
    return ((x.flip(1) @ w).sin() - y).pow(2).mean()


def meta_step(meta):
    return _step(meta, {"seed": 8, "inner_steps": 2, "clamp": True})


def meta_step_fixed(meta):
    return _step(meta, {"seed": 8, "inner_steps": 2, "clamp": False})
