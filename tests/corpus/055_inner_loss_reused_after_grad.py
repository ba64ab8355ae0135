"""autograd.grad without create_graph/retain_graph frees the inner graph; adding that inner loss to the meta loss needs
it again.
"""

import torch

META = {
    "title": "One of the differentiated Variables appears to not have been used in the graph",
    "source": "https://github.com/gitabcworld/FewShotLearning/issues/3",
    "kind": "retain-graph-forgotten",
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


def unroll(meta, cg):
    ws = weights()
    inner = loss([w * (1 + meta["lr"]) for w in ws])
    gs = torch.autograd.grad(inner, ws, create_graph=cg)  # GUILTY
    return loss([w - meta["lr"] * g for w, g in zip(ws, gs)]) + 0.1 * inner


def meta_step(meta):
    return unroll(meta, False)


def meta_step_fixed(meta):
    return unroll(meta, True)
