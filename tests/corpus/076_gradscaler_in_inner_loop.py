"""GradScaler.unscale_/step work on .grad of an optimizer's leaves; a functional inner loop has no .grad, so the scaler
saw nothing.
"""

import torch

META = {
    "title": "Mixed precision training",
    "source": "https://github.com/facebookresearch/higher/issues/127",
    "kind": "amp",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def weights():
    return [
        torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D, requires_grad=True),
        torch.tensor([[0.5], [-0.3]], dtype=D, requires_grad=True),
    ]


def loss(ws):
    return ((torch.tanh(X @ ws[0]) @ ws[1] - Y) ** 2).mean()


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


def meta_step(meta):
    ws = weights()
    sc = torch.amp.GradScaler("cpu", init_scale=1024.0)
    inner = torch.optim.SGD(ws, lr=0.1)
    gs = torch.autograd.grad(sc.scale(loss(ws)), ws, create_graph=True)
    sc.unscale_(inner)
    sc.step(inner)  # GUILTY
    return loss([w - meta["lr"] * g for w, g in zip(ws, gs)])


def meta_step_fixed(meta):
    ws = weights()
    sc = torch.amp.GradScaler("cpu", init_scale=1024.0)
    gs = torch.autograd.grad(sc.scale(loss(ws)), ws, create_graph=True)
    return loss([w - meta["lr"] * g / sc.get_scale() for w, g in zip(ws, gs)])
