"""Answers to the exercises of notebook 08: wrong ones with what must be said of them, and right ones."""

import math

import torch


def outer_loop(
    optimiser=lambda rate: torch.optim.SGD(rate, lr=0.05),
    log=False,
    create_graph=True,
    update=torch.sub,
    finish=lambda w: w,
    steps=lambda K, outer_step: K,
    before=lambda parameter: None,
    after=lambda parameter: None,
    outer_steps=100,
):
    """An answer to 8.2. `before` and `after` are done to the meta-parameter around the optimiser's step."""

    def learn(rate, K, start, inner_loss, loss):
        parameter = torch.tensor(math.log(rate) if log else rate, dtype=torch.float64, requires_grad=True)
        rule, rates = optimiser([parameter]), []
        for outer_step in range(outer_steps):
            w = start.clone().requires_grad_()
            for _ in range(steps(K, outer_step)):
                (grad,) = torch.autograd.grad(inner_loss(w), w, create_graph=create_graph)
                w = update(w, (parameter.exp() if log else parameter) * grad)
            rule.zero_grad()
            loss(finish(w)).backward()
            before(parameter)
            rule.step()
            after(parameter)
            rates.append((parameter.exp() if log else parameter).item())
        return rates

    return learn


def clip(parameter):
    torch.nn.utils.clip_grad_value_([parameter], 1.0)


def clip_norm(parameter):
    torch.nn.utils.clip_grad_norm_([parameter], 1.0)


def no_gradient(parameter):
    parameter.grad.zero_()


def at_most(bound):
    def clamp(parameter):
        with torch.no_grad():
            parameter.clamp_(max=bound)

    return clamp


def sgd(lr, **options):
    return lambda rate: torch.optim.SGD(rate, lr=lr, **options)


def adam(lr):
    return lambda rate: torch.optim.Adam(rate, lr=lr)


def by_trying(rate, K, start, inner_loss, loss):
    """No gradient at all: a step up or down, whichever has the smaller outer loss."""

    def value(rate):
        w = start.clone()
        for _ in range(K):
            w = w.detach().requires_grad_()
            w = w - rate * torch.autograd.grad(inner_loss(w), w)[0]
        return loss(w).item()

    rates = []
    for _ in range(100):
        rate = min((rate - 0.01, rate, rate + 0.01), key=value)
        rates.append(rate)
    return rates


def other_loss(rate, K, start, inner_loss, loss):
    return outer_loop(before=clip)(rate, K, start, inner_loss, inner_loss)


def other_inner_loss(rate, K, start, inner_loss, loss):
    return outer_loop(before=clip)(rate, K, start, loss, loss)


def as_tensor(rate, K, start, inner_loss, loss):
    """The notebook's own loop with the clip in another place; returns one tensor."""
    rate, rates = torch.tensor(rate, dtype=torch.float64), []
    while len(rates) < 100:
        rate = rate.detach().requires_grad_()
        w = start.clone().requires_grad_()
        for _ in range(K):
            (grad,) = torch.autograd.grad(inner_loss(w), w, create_graph=True)
            w = w - rate * grad
        (gradient,) = torch.autograd.grad(loss(w), rate)
        rate = rate - (0.05 * gradient).clamp(-0.05, 0.05)
        rates.append(rate)
    return torch.stack(rates)


TABLE = {("restarted", start, K): "above" for start in ("far", "near") for K in (1, 50)}
TABLE |= {("online", start, K): "below" for start in ("far", "near") for K in (1, 50)}
RIGHT_TABLE = TABLE | {("restarted", "near", 1): "below"}

WRONG = {
    "8.1": [
        ("Not yet at the edge for curvatures 3, 0.06, 1.5. That rate finishes the steepest", lambda h: 1 / h.max()),
        ("Beyond the edge for curvatures 3, 0.06, 1.5. The mean hides", lambda h: 2 / h.mean()),
        ("Beyond the edge for curvatures 3, 0.06, 1.5. The flattest direction", lambda h: 2 / h.min()),
        ("Beyond the edge for curvatures 3, 0.06, 1.5. A larger curvature makes", lambda h: 2 * h.max()),
        ("Not yet at the edge for curvatures 3, 0.06, 1.5. Curvatures do not add up", lambda h: 2 / h.sum()),
        ("Not yet at the edge for curvatures 3, 0.06, 1.5. That is the fastest", lambda h: 2 / (h.min() + h.max())),
        ("Beyond the edge for curvatures 2, 0.5, 4, 1. The first is only one", lambda h: 2 / h[0]),
        ("With a negative rate descent walks up", lambda h: -2 / h.max()),
        ("Not yet at the edge for curvatures 3, 0.06, 1.5.", lambda h: 1.9 / h.max()),
        ("Beyond the edge for curvatures 3, 0.06, 1.5.", lambda h: 2.1 / h.max()),
        ("It returned 0: then nothing moves", lambda h: 0.0 * h.max()),
        ("It returned inf: no rate", lambda h: 2 / (0 * h.max())),
        ("returned a tensor of shape (3,): return one number", lambda h: 2 / h),
        ("returned NoneType: return one number", lambda h: None),
        ("is not callable", 2.0),
    ],
    "8.2": [
        ("Right at one step, wrong at two: it diverges: the first meta-gradient is 49.3", outer_loop()),
        ("wrong at two: one huge step has thrown the rate from 0.8 to 0.111", outer_loop(log=True)),
        ("Right at one step, wrong at two: it stops short, at 0.32", outer_loop(adam(0.05))),
        ("Right at one step, wrong at two: it has learned the best rate for K = 1", outer_loop(steps=lambda K, _: 1)),
        (
            "Right at two, wrong at five: it has learned the best rate for K = 2",
            outer_loop(steps=lambda K, _: min(K, 2), before=clip),
        ),
        ("network: the rate jumps to 0.5 and stays there", outer_loop(after=at_most(0.5))),
        ("the rate does not settle but jumps between", outer_loop(after=at_most(0.65))),
        ("is never asked for", lambda rate, K, *_: [0.4] * 100),
        ("The rate jumps to 0.3 and stays there", outer_loop(after=at_most(0.3))),
        ("does not move: no inner step is made", outer_loop(update=lambda w, step: w + 0 * step)),
        ("It settles at 0.673", outer_loop(update=lambda w, step: w - step / 2, before=clip)),
        ("The rate hardly moves", outer_loop(sgd(1e-6))),
        ("It stops short, at 0.37", outer_loop(sgd(1e-3))),
        (
            "Right at one step, wrong at two: the inner gradient is not differentiated",
            outer_loop(create_graph=False, before=clip),
        ),
        (
            "Right at one step, wrong at two: the step keeps its history, but the weights",
            outer_loop(update=lambda w, step: w.detach() - step, before=clip),
        ),
        (
            "does not move: the weights that reach the outer loss have no history",
            outer_loop(finish=lambda w: w.detach().requires_grad_()),
        ),
        ("autograd finds no graph where it is asked for a gradient", outer_loop(finish=torch.detach)),
        ("does not move: its gradient is zero, or no step", outer_loop(before=no_gradient)),
        ("it climbs the outer loss", outer_loop(sgd(0.05, maximize=True), before=clip)),
        ("The rate ends below zero", outer_loop(update=torch.add, before=clip)),
        ("There is one step more than was asked for", outer_loop(steps=lambda K, _: K + 1, before=clip)),
        ("it raises RuntimeError: no inner step is made", outer_loop(steps=lambda K, _: K - 1, before=clip)),
        ("The inner loss, the one to descend, is never asked for", outer_loop(steps=lambda K, _: K - 1)),
        ("The outer loss, the one to learn the rate for, is never asked for", other_loss),
        ("The inner loss, the one to descend, is never asked for", other_inner_loss),
        ("returned 3 rates", outer_loop(outer_steps=3, before=clip)),
        ("returned NoneType", lambda *_: None),
        ("is not callable", [0.4] * 100),
    ],
    "8.3": [
        ("7 of 8 are as you say. restarted, near, 1: the steep direction has nothing left", TABLE),
        ("5 of 8 are as you say. restarted, far, 1: from far away", dict.fromkeys(TABLE, "below")),
        ("3 of 8 are as you say. online, far, 1: the last window", dict.fromkeys(TABLE, "above")),
        ("restarted, near, 50: fifty steps are enough", RIGHT_TABLE | {("restarted", "near", 50): "below"}),
        ("online, near, 50: the last window", RIGHT_TABLE | {("online", "near", 50): "above"}),
        ("predict one of 'above', 'below'", dict.fromkeys(TABLE, "too small")),
        ("Give a dict with one prediction for each", {}),
        ("Give a dict with one prediction for each", None),
    ],
}
RIGHT = {
    "8.1": [
        lambda h: 2 / h.max(),
        lambda h: (2 / h).min().item(),
        lambda h: 2 / torch.linalg.matrix_norm(torch.diag(h), 2),
        lambda h: 2 / max(h.tolist()),
    ],
    "8.2": [
        outer_loop(before=clip),
        outer_loop(before=clip_norm),
        outer_loop(log=True, before=clip),
        outer_loop(adam(0.05), log=True),
        outer_loop(steps=lambda K, outer_step: min(K, 1 + outer_step // 20)),
        outer_loop(lambda rate: torch.optim.Rprop(rate, lr=0.05)),
        outer_loop(before=lambda parameter: parameter.grad.tanh_()),
        by_trying,
        as_tensor,
    ],
    "8.3": [RIGHT_TABLE],
}
