"""AOTAutograd has no double backward. In torch 2.13 the gradient of a compiled function comes back with
requires_grad=True and a grad_fn that leads nowhere.
"""

import torch

META = {
    "title": "torch.compile silently drops higher-order grad graph metadata from autograd.grad(create_graph=True)",
    "source": "https://github.com/pytorch/pytorch/issues/181581",
    "kind": "torch-compile-double-backward",
    "style": "meta_step",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=D, requires_grad=True)}


def weights():
    return [torch.tensor([[0.3], [-0.2]], dtype=D, requires_grad=True)]


def loss(ws):
    return ((torch.tanh(X @ ws[0]) - Y) ** 2).mean()


def meta_step(meta):
    fast = torch.compile(lambda w: loss([w]), backend="aot_eager")  # GUILTY
    w = weights()[0]
    for _ in range(2):
        (g,) = torch.autograd.grad(fast(w), w, create_graph=True)
        w = w - meta["lr"] * g
    return loss([w])


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(2):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
