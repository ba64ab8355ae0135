import torch

META = {"id": "r20", "kind": "second-order clip", "verdict": "right"}

Z = torch.tensor([[2.0, -1.0, 0.5], [0.3, 1.4, -2.0]], dtype=torch.float64)
t = torch.tensor([4.0, -3.0], dtype=torch.float64)


def loss(ws):
    return (torch.sinh(Z @ ws[0]) * ws[1] - t).pow(2).mean()


def clip(gs, max_norm):
    total = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gs]))
    coef = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    return [g * coef for g in gs]


def meta_params():
    return {
        "lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
        "max_norm": torch.tensor(1.0, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    ws = [
        torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True),
        torch.tensor([1.0, 0.7], dtype=torch.float64, requires_grad=True),
    ]
    for _ in range(3):
        gs = clip(torch.autograd.grad(loss(ws), ws, create_graph=True), meta["max_norm"])
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
