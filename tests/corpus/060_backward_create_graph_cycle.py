"""loss.backward(create_graph=True) stores in w.grad a tensor whose graph holds w: a cycle the Python collector cannot
see.
"""

import gc
import warnings
import weakref

import torch

META = {
    "title": "backward(create_graph=True) should raise a warning for potential memory leak",
    "source": "https://github.com/pytorch/pytorch/issues/4661",
    "kind": "backward-create-graph",
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


def outer(use_backward):
    warnings.simplefilter("ignore")
    refs = []
    for _ in range(3):
        ws = weights()
        refs += [weakref.ref(w.untyped_storage()) for w in ws] if False else [weakref.ref(w) for w in ws]
        if use_backward:
            loss(ws).backward(create_graph=True)  # GUILTY
        else:
            torch.autograd.grad(loss(ws), ws, create_graph=True)
    del ws
    gc.collect()
    return {"leaked_weights": sum(r() is not None for r in refs)}


def run():
    return outer(True)


def run_fixed():
    return outer(False)
