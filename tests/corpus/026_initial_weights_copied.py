"""The inner loop starts from a detached copy of the initialisation, so the initialisation (the meta-parameter) gets no
gradient.
"""

import torch

META = {
    "title": "Grad of model parameters is None",
    "source": "https://github.com/facebookresearch/higher/issues/69",
    "kind": "deepcopy",
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
    return dict(zip(("w1", "w2"), weights()))


def unroll(ws):
    gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
    return loss([w - 0.1 * g for w, g in zip(ws, gs)])


def meta_step(meta):
    return unroll([w.detach().clone().requires_grad_() for w in meta.values()])  # GUILTY


def meta_step_fixed(meta):
    return unroll([w.clone() for w in meta.values()])
