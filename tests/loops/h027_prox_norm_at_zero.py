import torch

META = {
    "id": "h027",
    "kind": "nan-norm-zero",
    "verdict": "nan",
    "cause": "The proximal term is an un-squared distance to the start, whose derivative at distance zero is 0/0.",
}


def distance(ws, anchors):
    sq = sum(((w - a) ** 2).sum() for w, a in zip(ws, anchors))
    return sq.sqrt()  # GUILTY


def distance_ok(ws, anchors):
    sq = sum(((w - a) ** 2).sum() for w, a in zip(ws, anchors))
    return (sq + 1e-6).sqrt()


pairs = [(torch.tensor([1.0, -1.0], dtype=torch.float64), 0.5), (torch.tensor([0.3, 0.8], dtype=torch.float64), -0.2)]


def fit(ws):
    total = 0
    for x, y in pairs:
        total = total + (torch.tanh(ws[0] @ x) * ws[1] - y) ** 2
    return total


def meta_params():
    return {"prox": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, dist=distance):
    anchors = [
        torch.tensor([0.2, 0.9], dtype=torch.float64, requires_grad=True),
        torch.tensor(1.1, dtype=torch.float64, requires_grad=True),
    ]
    ws = [a.clone() for a in anchors]
    for _ in range(3):
        obj = fit(ws) + meta["prox"] * dist(ws, anchors)
        gs = torch.autograd.grad(obj, ws, create_graph=True)
        ws = [w - 0.2 * g for w, g in zip(ws, gs)]
    return fit(ws)


def meta_step_fixed(meta):
    return meta_step(meta, distance_ok)
