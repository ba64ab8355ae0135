import torch

META = {"id": "r04", "kind": "legal in-place on temporaries", "verdict": "right"}

A = torch.tensor([[1.0, 0.4], [0.4, 2.0]], dtype=torch.float64)


def loss(w):
    out = w @ A
    out += 1.0
    out.mul_(0.5)
    s = out.sin()
    return (s.sum() - 0.3).pow(2) + out.square().sum()


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    w = torch.tensor([0.6, -0.5], dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        step = meta["lr"] * g
        step.neg_()
        step += w
        w = step
    return loss(w)
