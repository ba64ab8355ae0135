import torch

META = {
    "id": "h094",
    "kind": "zero-gradient-op",
    "verdict": "independent",
    "params": ["tau"],
    "cause": "Comparing with the learned threshold gives a boolean mask, which has no derivative.",
}


def mask(g, tau):
    return (g.abs() > tau).to(g.dtype)  # GUILTY


def soft_mask(g, tau):
    return torch.sigmoid(20 * (g.abs() - tau))


F = torch.tensor([[1.0, 0.3, -0.2, 0.5], [0.1, -0.9, 0.7, 0.2], [0.6, 0.6, -0.1, -1.0]], dtype=torch.float64)
r = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)


def loss(w):
    return torch.nn.functional.softplus(-(F @ w) * r).sum()


def meta_params():
    return {
        "tau": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
        "lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, mask=mask):
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        g = torch.autograd.grad(loss(w), w, create_graph=True)[0]
        w = w - meta["lr"] * mask(g, meta["tau"]) * g
    return loss(w)


def meta_step_fixed(meta):
    return meta_step(meta, soft_mask)
