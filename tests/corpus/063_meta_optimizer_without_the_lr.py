"""The meta-optimizer was built from the policy's parameters, not the meta-learner's, so the learned rates get
gradients and never move.
"""

import torch

META = {
    "title": "Meta-SGD - Learning rate alpha not changing",
    "source": "https://github.com/learnables/learn2learn/issues/167",
    "kind": "meta-optimizer-wrong-params",
    "style": "script",
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


class MetaSGD(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = torch.nn.ParameterList(weights())
        self.lrs = torch.nn.ParameterList([torch.full_like(w, 0.1) for w in self.policy])


def outer(right):
    meta = MetaSGD()
    opt = torch.optim.Adam((meta if right else meta.policy).parameters(), lr=0.01)  # GUILTY
    ws = list(meta.policy)
    gs = torch.autograd.grad(loss(ws), ws, create_graph=True)
    before = meta.lrs[0].detach().clone()
    loss([w - l * g for w, l, g in zip(ws, meta.lrs, gs)]).backward()
    opt.step()
    return {"lr_moved": bool((meta.lrs[0] != before).any()), "lr_has_grad": meta.lrs[0].grad is not None}


def run():
    return outer(False)


def run_fixed():
    return outer(True)
