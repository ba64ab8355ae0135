import torch

META = {
    "id": "h034",
    "kind": "tensor-recreated",
    "verdict": "cut",
    "cause": "torch.tensor(rate) builds a new leaf out of the learned rate.",
}


def to_tensor(v, device="cpu"):
    return torch.tensor(v, device=device, dtype=torch.float64)  # GUILTY


def to_tensor_ok(v, device="cpu"):
    return torch.as_tensor(v, device=device, dtype=torch.float64)


class Config(dict):
    __getattr__ = dict.__getitem__


def build_cfg(meta, conv):
    return Config(lr=conv(meta["lr"]), wd=conv(0.01), steps=3)


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


x = torch.tensor([[1.0, 0.5], [-0.5, 2.0], [0.3, 0.3]], dtype=torch.float64)


def recon(W):
    return ((torch.tanh(x @ W) @ W.T - x) ** 2).mean()


def meta_step(meta, conv=to_tensor):
    cfg = build_cfg(meta, conv)
    W = torch.tensor([[0.5, -0.3], [0.2, 0.8]], dtype=torch.float64, requires_grad=True)
    for _ in range(cfg.steps):
        G = torch.autograd.grad(recon(W) + cfg.wd * W.square().sum(), W, create_graph=True)[0]
        W = W - cfg.lr * G
    return recon(W)


def meta_step_fixed(meta):
    return meta_step(meta, to_tensor_ok)
