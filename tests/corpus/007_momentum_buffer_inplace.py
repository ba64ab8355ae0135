"""buf.mul_().add_() rewrites the momentum buffer that lr * buf saved for backward one step earlier."""

import torch

META = {
    "title": "Add option to differentiable optimizers to treat buffers as constant",
    "source": "https://github.com/facebookresearch/higher/issues/53",
    "kind": "inplace-on-optimizer-state",
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


def unroll(meta, inplace):
    w, buf = weights(), None
    buf = [torch.zeros_like(a) for a in w]
    for _ in range(3):
        gs = torch.autograd.grad(loss(w), w, create_graph=True)
        for i, g in enumerate(gs):
            if inplace:
                buf[i].mul_(0.9).add_(g)  # GUILTY
            else:
                buf[i] = 0.9 * buf[i] + g
        w = [a - meta["lr"] * b for a, b in zip(w, buf)]
    return loss(w)


def meta_step(meta):
    return unroll(meta, True)


def meta_step_fixed(meta):
    return unroll(meta, False)
