"""At evaluation (or with no meta backward) every step hangs another stretch of graph on the carried weights; nothing
frees it.
"""

import torch

META = {
    "title": "[BUG] Memory keep increase in MetaAdam due to gradient link",
    "source": "https://github.com/metaopt/torchopt/issues/218",
    "kind": "memory-growth",
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


def nodes(t):
    seen, todo = set(), [t.grad_fn]
    while todo:
        n = todo.pop()
        if n is not None and n not in seen:
            seen.add(n)
            todo += [a for a, _ in n.next_functions]
    return len(seen)


def outer(detach):
    ws, sizes = weights(), []
    for _ in range(6):
        gs = torch.autograd.grad(loss(ws), ws, create_graph=not detach)
        ws = [w - 0.1 * g for w, g in zip(ws, gs)]  # GUILTY
        sizes.append(nodes(loss(ws)))
        if detach:
            ws = [w.detach().requires_grad_() for w in ws]
    return {"graph_nodes": sizes, "grows": sizes[-1] > 2 * sizes[0]}


def run():
    return outer(False)


def run_fixed():
    return outer(True)
