"""Prototypical few-shot head on an embedding that is adapted with learned per-layer rates."""

import torch
import torch.nn.functional as F

META = {
    "id": "h107",
    "kind": "detach",
    "verdict": "wrong",
    "cause": "Class prototypes are detached in the outer loss, although they depend on the adapted embedding.",
}

sup = torch.tensor([[0.9, 0.1, 0.3], [1.1, -0.2, 0.2], [-0.8, 0.5, 0.1], [-1.0, 0.7, -0.3]], dtype=torch.float64)
sup_y = torch.tensor([0, 0, 1, 1])
qry = torch.tensor([[0.7, 0.3, 0.0], [-0.6, 0.2, 0.4], [0.2, 0.1, -0.9]], dtype=torch.float64)
qry_y = torch.tensor([0, 1, 0])


def embed(ws, x):
    return torch.tanh(x @ ws[0]) @ ws[1]


def prototypes(ws):
    e = embed(ws, sup)
    return torch.stack([e[sup_y == c].mean(0) for c in (0, 1)])


def proto_loss(ws, x, y, protos):
    d = (embed(ws, x)[:, None] - protos[None]).pow(2).sum(-1)
    return F.cross_entropy(-d, y)


def outer(ws, cut=True):
    protos = prototypes(ws)
    if cut:
        protos = protos.detach()  # GUILTY
    return proto_loss(ws, qry, qry_y, protos)


def adapt(rates, n=2):
    torch.manual_seed(9)
    ws = [
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 2, dtype=torch.float64, requires_grad=True),
    ]
    for _ in range(n):
        gs = torch.autograd.grad(proto_loss(ws, sup, sup_y, prototypes(ws)), ws, create_graph=True)
        ws = [w - r * g for w, r, g in zip(ws, rates, gs)]
    return ws


def meta_params():
    return {"rates": torch.tensor([0.2, 0.3], dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    return outer(adapt(meta["rates"]))


def meta_step_fixed(meta):
    return outer(adapt(meta["rates"]), cut=False)
