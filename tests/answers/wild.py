"""Answers to the exercises of notebook 09: wrong ones with what must be said of them, and right ones."""

import torch

from metalib.exercises.wild import adam as of_the_workbook


def rooted(squares):
    return (squares + 1e-16).sqrt()


def adam(root=rooted, create_graph=True, start=None, mean=None, kept=None, corrected=True, sign=1, more=0, divide=True):
    """Adam with one thing done differently."""

    def loop(w, rate, K, loss):
        m, s = torch.zeros_like(w), torch.zeros_like(w)
        for step in range(1, K + 1 + more):
            (g,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            if kept:
                m, s = kept(m), kept(s)
            m = 0.9 * m + 0.1 * (mean(g) if mean else g)
            s = 0.999 * s + 0.001 * g**2
            first, second = (1 - 0.9**step, 1 - 0.999**step) if corrected else (1.0, 1.0)
            size = root(s / second) + 1e-8 if divide else 1.0
            w = (start(w) if start else w) - sign * rate * m / first / size
        return w

    return loop


def writes_its_memory(means=False, squares=False, root=rooted):
    def loop(w, rate, K, loss):
        m, s = torch.zeros_like(w), torch.zeros_like(w)
        for step in range(1, K + 1):
            (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
            m = m.mul_(0.9).add_(0.1 * g) if means else 0.9 * m + 0.1 * g
            s = s.mul_(0.999).add_(0.001 * g**2) if squares else 0.999 * s + 0.001 * g**2
            w = w - rate * m / (1 - 0.9**step) / (root(s / (1 - 0.999**step)) + 1e-8)
        return w

    return loop


def in_the_papers_other_order(w, rate, K, loss):
    """Both corrections in one factor. The 1e-8 then weighs a little less, which moves the loss in its last digits."""
    m, s = torch.zeros_like(w), torch.zeros_like(w)
    for step in range(1, K + 1):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
        size = rate * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
        w = w - size * m / (s.clamp(min=1e-18).sqrt() + 1e-8)
    return w


def masked(squares):
    off = squares == 0
    return torch.where(off, 0.0, torch.where(off, 1.0, squares).sqrt())


def masked_too_late(squares):
    return torch.where(squares == 0, 0.0, squares.sqrt())


def plain(w, rate, K, loss):
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        w = w - rate * g
    return w


def one_too_few(w, rate, K, loss):
    return adam()(w, rate, K - 1, loss) if K > 1 else w + 0 * rate


R, W = "right", "wrong"
TABLE = {
    "bare": [R, W, W],
    "retained": [R, W, W],
    "detached": [R, W, W],
    "copy": [R, W, W],
    "not first": [R, R, R],
    "only last": [R, R, W],
}

WRONG = {
    "9.1": [
        (
            "Right at one step, wrong at two: it raises RuntimeError: something that autograd had saved",
            writes_its_memory(means=True, squares=True, root=torch.sqrt),
        ),
        ("it raises RuntimeError: something that autograd had saved", writes_its_memory(means=True)),
        (
            "not on the network with ReLU units: somewhere an infinite slope meets a zero",
            writes_its_memory(squares=True, root=torch.sqrt),
        ),
        ("somewhere an infinite slope meets a zero", adam(root=torch.sqrt)),
        ("somewhere an infinite slope meets a zero", adam(root=masked_too_late)),
        (
            "Right at one step, wrong at two: the root has no history",
            adam(root=lambda squares: squares.sqrt().detach()),
        ),
        ("the root has no history", adam(root=lambda squares: squares.detach().sqrt())),
        ("the inner gradient is not differentiated", adam(create_graph=False)),
        ("the mean of the gradients has no history", adam(mean=torch.Tensor.detach)),
        ("Right at two, wrong at five: what Adam remembers", adam(kept=torch.Tensor.detach)),
        ("the step keeps its history, but the weights", adam(start=torch.Tensor.detach)),
        ("no gradient arrives", lambda w, rate, K, loss: adam()(w, rate.detach(), K, loss)),
        ("exactly zero", lambda w, rate, K, loss: adam()(w, rate.detach(), K, loss).detach() + 0 * rate),
        ("right but for its sign", lambda w, rate, K, loss: adam()(w, 2 * rate.detach() - rate, K, loss)),
        ("without the two corrections", adam(corrected=False)),
        ("not divided by the root", adam(divide=False)),
        ("by the squares, not by their root", adam(root=lambda squares: squares + 1e-16)),
        ("not divided by the root", plain),
        ("walk up the loss", adam(sign=-1)),
        ("one step more", adam(more=1)),
        ("The weights have not moved", one_too_few),
        ("not Adam's, so this is another program", adam(root=lambda squares: (squares + 1e-4).sqrt())),
        ("returned NoneType", lambda w, rate, K, loss: None),
        ("is not callable", 3),
    ],
    "9.2": [
        ("9 of 18 are as you say. bare, 2: without the flag", dict.fromkeys(TABLE, [R, R, R])),
        ("17 of 18 are as you say. retained, 2: `retain_graph` keeps", TABLE | {"retained": [R, R, W]}),
        ("17 of 18 are as you say. detached, 5: the graph of the gradient is built", TABLE | {"detached": [R, W, R]}),
        ("16 of 18 are as you say. copy, 2: the flag is there", TABLE | {"copy": [R, R, R]}),
        ("16 of 18 are as you say. not first, 2: only the first step goes", TABLE | {"not first": [R, W, W]}),
        ("17 of 18 are as you say. only last, 5: the second, third", TABLE | {"only last": [R, R, R]}),
        ("17 of 18 are as you say. only last, 2: of two gradients", TABLE | {"only last": [R, W, W]}),
        (
            "12 of 18 are as you say. bare, 1: the only inner gradient",
            {name: [W, *row[1:]] for name, row in TABLE.items()},
        ),
        ("predict one of 'raises'", TABLE | {"bare": [R, W, "first order"]}),
        ("Give a dict with three verdicts", TABLE | {"bare": R}),
        ("Give a dict with three verdicts", TABLE | {"bare": [R, W]}),
        ("Give a dict with three verdicts", {}),
        ("Give a dict with three verdicts", None),
    ],
}
RIGHT = {
    "9.1": [
        adam(),
        writes_its_memory(squares=True),
        adam(root=masked),
        adam(root=lambda squares: squares.clamp(min=1e-14).sqrt()),
        of_the_workbook,
        in_the_papers_other_order,
    ],
    "9.2": [TABLE, {name: tuple(row) for name, row in TABLE.items()}],
}
