"""differentiable=True only removes the no_grad guard; the optimizer still writes in place, which a leaf forbids."""

import torch

META = {
    "title": "`differentiable` leads an in-place error in torch.optim.Adam() and AdamW()",
    "source": "https://github.com/pytorch/pytorch/issues/150183",
    "kind": "inplace-on-leaf",
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
    opt = torch.optim.Adam(ws, lr=meta["lr"], differentiable=True)
    loss(ws).backward(create_graph=True)
    opt.step()  # GUILTY
    return loss(ws)


def meta_step_fixed(meta):
    ws = [w.clone() for w in weights()]
    opt = torch.optim.Adam(ws, lr=meta["lr"], differentiable=True)
    for w, g in zip(ws, torch.autograd.grad(loss(ws), ws, create_graph=True)):
        w.grad = g
    opt.step()
    return loss(ws)
