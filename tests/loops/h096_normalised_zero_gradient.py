import torch
import torch.nn.functional as F

META = {
    "id": "h096",
    "kind": "nan-norm-zero",
    "verdict": "nan",
    "cause": "Normalised descent divides a dead layer's zero gradient by its zero norm.",
}


def unit(g):
    return g / g.norm()  # GUILTY


def unit_eps(g):
    return g / (g.square().sum() + 1e-8).sqrt()


def net(ws, x):
    return F.relu(x @ ws["dead"]).sum(1) + torch.tanh(x @ ws["live"]).sum(1)


x = torch.tensor([[1.0, 0.5], [0.3, 2.0], [0.7, 0.7]])
y = torch.tensor([0.4, 1.0, -0.3])


def meta_params():
    return {"rate": torch.tensor(0.2, requires_grad=True)}


def meta_step(meta, unit=unit):
    ws = {
        "dead": torch.full((2, 2), -1.0, requires_grad=True),
        "live": torch.tensor([[0.3, -0.2], [0.1, 0.4]], requires_grad=True),
    }
    for _ in range(2):
        loss = F.mse_loss(net(ws, x), y)
        gs = torch.autograd.grad(loss, list(ws.values()), create_graph=True)
        ws = {k: w - meta["rate"] * unit(g) for (k, w), g in zip(ws.items(), gs)}
    return F.mse_loss(net(ws, x), y)


def meta_step_fixed(meta):
    return meta_step(meta, unit_eps)
