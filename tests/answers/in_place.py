"""Answers to the exercises of notebook 02: wrong ones with what must be said of them, and right ones."""

import torch


def loop(update, copy=lambda w: w, create_graph=True):
    """An answer whose inner loop does `update` to the weights; `copy` is done once, before it."""

    def descend(w, rate, K, loss):
        w = copy(w)
        for _ in range(K):
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = update(w, rate * grad)
        return w

    return descend


def no_grad(w, step):
    with torch.no_grad():
        w -= step
    return w


def gradient_filled_in(w, rate, K, loss):
    descended = loop(lambda w, step: (w - step).detach().requires_grad_())(w, rate, K, loss)
    return descended + 0 * rate


GRID = {
    (loop, model, K): "right"
    for loop in ("copy once", "copy each step")
    for model in ("one weight", "network")
    for K in (1, 2, 5)
}
RIGHT_GRID = GRID | {("copy once", "network", K): "raises" for K in (2, 5)}

WRONG = {
    "2.1": [
        ("a leaf that requires grad may not be written to", loop(torch.Tensor.sub_)),
        ("Right on one weight, not on the network: it raises", loop(torch.Tensor.sub_, copy=torch.clone)),
        (
            "no gradient arrives: a copy that is detached",
            loop(lambda w, step: w.detach().clone().requires_grad_().sub(step.detach())),
        ),
        ("no gradient arrives: a copy that is detached", loop(no_grad)),
        ("exactly zero", gradient_filled_in),
        ("Right at one step, wrong at two: the inner gradient is not", loop(torch.sub, create_graph=False)),
        (
            "Right at one step, wrong at two: the step keeps its history",
            loop(lambda w, step: w.detach().clone().sub_(step)),
        ),
        ("weights walk up the loss", loop(torch.add)),
        ("returned NoneType", lambda w, rate, K, loss: None),
        ("is not callable", 3),
    ],
    "2.2": [
        ("10 of 12 are as you say. copy once, network, 2: On the network", GRID),
        ("Give a dict with one prediction for each", {}),
        ("predict one of 'raises'", dict.fromkeys(GRID, "fails")),
        (
            "10 of 12 are as you say. copy once, network, 1: One step's",
            RIGHT_GRID | {("copy once", "network", 1): "raises", ("copy each step", "network", 2): "raises"},
        ),
        ("2 of 12 are as you say. copy once, one weight, 1: One", dict.fromkeys(GRID, "raises")),
        ("What autograd saved is not", RIGHT_GRID | {("copy each step", "network", 2): "raises"}),
    ],
}
RIGHT = {
    "2.1": [
        loop(torch.sub),
        loop(lambda w, step: w.clone().sub_(step)),
        loop(lambda w, step: torch.add(w, step, alpha=-1), copy=torch.clone),
    ],
    "2.2": [RIGHT_GRID],
}
