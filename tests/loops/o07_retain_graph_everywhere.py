"""Momentum-free online tuning; the graph is kept over outer steps and grows."""

import torch

META = {
    "id": "o07",
    "kind": "memory-growth",
    "cause": "The weights are carried with their graph and retain_graph=True hides the error: each backward goes through all earlier outer steps.",
}


def graph_size(t):
    seen, todo = set(), [t.grad_fn]
    while todo:
        f = todo.pop()
        if f is None or f in seen:
            continue
        seen.add(f)
        todo += [n for n, _ in f.next_functions]
    return len(seen)


def loss(w):
    return (w[0] * w[1] - 1).pow(2) + 0.1 * w.pow(4).sum()


def train(cut):
    log_lr = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.5, 0.2], dtype=torch.float64, requires_grad=True)
    sizes = []
    for step in range(6):
        if cut:
            w = w.detach().requires_grad_()
        w = w - log_lr.exp() * torch.autograd.grad(loss(w), w, create_graph=True)[0]  # GUILTY
        outer = loss(w)
        log_lr.grad = None
        outer.backward(retain_graph=not cut)  # ALSO
        sizes.append(graph_size(outer))
        with torch.no_grad():
            log_lr -= 0.1 * log_lr.grad
    return sizes


def run():
    return train(cut=False)


def run_fixed():
    return train(cut=True)
