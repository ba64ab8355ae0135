import torch

META = {"id": "r30", "kind": "index assignment that saves nothing", "verdict": "right"}

T = 4


def meta_params():
    return {"gain": torch.tensor([0.2, 0.1, 0.3, 0.05], dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    curve = torch.zeros(T, dtype=torch.float64)
    w = torch.tensor([0.8, -1.2], dtype=torch.float64, requires_grad=True)
    for k in range(T):
        val = (w.sin() + w.pow(2)).sum()
        curve[k] = val
        g = torch.autograd.grad(val, w, create_graph=True)[0]
        w = w - meta["gain"][k] * g
    weights = torch.zeros(T, dtype=torch.float64)
    weights[1:].fill_(1.0)
    return (curve * weights).sum() + (w.sin() + w.pow(2)).sum()
