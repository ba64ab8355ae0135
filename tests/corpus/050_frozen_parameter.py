"""The list given to autograd.grad contains a parameter with requires_grad=False."""

import torch

META = {
    "title": "A part of the network needs requires_grad=False",
    "source": "https://github.com/tristandeleu/pytorch-meta/issues/142",
    "kind": "frozen-parameter",
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


def unroll(meta, filt):
    ws = weights()
    ws[0].requires_grad_(False)
    train = [w for w in ws if w.requires_grad] if filt else ws
    gs = torch.autograd.grad(loss(ws), train, create_graph=True)  # GUILTY
    it = iter(gs)
    return loss([w - meta["lr"] * next(it) if w.requires_grad or not filt else w for w in ws])


def meta_step(meta):
    return unroll(meta, False)


def meta_step_fixed(meta):
    return unroll(meta, True)
