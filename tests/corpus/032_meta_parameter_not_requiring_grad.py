"""The learning rates are Parameters created with requires_grad=<config flag>; the flag is off (or undefined), so they
never move.
"""

import torch

META = {
    "title": "no defined parameter learnable_per_layer_per_step_inner_loop_learning_rate",
    "source": "https://github.com/AntreasAntoniou/HowToTrainYourMAMLPytorch/issues/38",
    "kind": "meta-param-frozen-by-flag",
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


def meta_step(meta, use_learnable_learning_rates=False):
    ws = weights()
    lr = torch.nn.Parameter(meta["lr"].data, requires_grad=use_learnable_learning_rates)  # GUILTY
    gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
    return loss([w - lr * g for w, g in zip(ws, gs)])


def meta_step_fixed(meta):
    ws = weights()
    for _ in range(1):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)
