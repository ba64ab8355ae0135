"""g.detach().mul_(c) rescales the numbers but not the graph: the meta-gradient is that of the unclipped update."""

import torch

META = {
    "title": "MAML Gradient clipping (review: do we need detach here? it would break the meta-gradient graph)",
    "source": "https://github.com/learnables/learn2learn/pull/244",
    "kind": "inplace-on-detached-grad",
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


def unroll(meta, broken):
    ws = weights()
    for _ in range(2):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
        norm = torch.stack([g.norm() for g in gs]).norm()
        if broken:
            for g in gs:
                g.detach().mul_((0.3 / norm.detach()).clamp(max=1.0))  # GUILTY
        else:
            gs = [g * (0.3 / norm).clamp(max=1.0) for g in gs]
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return loss(ws)


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
