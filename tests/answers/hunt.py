"""Answers to the exercises of notebook 10: wrong ones with what must be said of them, and right ones."""

import torch

from metalib.exercises.hunt import HIDDEN, LAST, NEW, momentum


def plain(rate_of=lambda rate: rate, create_graph=True, start=lambda w: w, step=lambda w: w, sign=-1):
    """A loop of plain gradient descent; `start` is done to the weights before it, `step` before each step."""

    def descend(w, rate, K, loss):
        w, rate = start(w), rate_of(rate)
        for _ in range(K):
            w = step(w)
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = w + sign * rate * grad
        return w

    return descend


def cut(w):
    return w.detach().requires_grad_()


def with_momentum(leaf, in_place, create_graph=True, keep=lambda v: v):
    """The twelfth loop with these of its faults."""

    def descend(w, rate, K, loss):
        v = torch.zeros_like(w)
        for _ in range(K):
            w = cut(w) if leaf else w
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            v = v.mul_(0.9).add_(grad) if in_place else keep(0.9 * v) + grad
            w = w - rate * v
        return w

    return descend


def no_grad_velocity(w, rate, K, loss):
    v = torch.zeros_like(w)
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        with torch.no_grad():
            v.mul_(0.9).add_(grad)
        w = w - rate * v.clone()
    return w


def filled_in(loop):
    return lambda w, rate, K, loss: loop(w, rate.detach(), K, loss).detach() + 0 * rate


def other_sign(loop):
    return lambda w, rate, K, loss: loop(w, 2 * rate.detach() - rate, K, loss)


def steps(loop, change):
    return lambda w, rate, K, loss: loop(w, rate, change(K), loss) + 0 * rate


def list_of_velocities(w, rate, K, loss):
    velocities = [torch.zeros_like(w)]
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        velocities.append(torch.add(grad, velocities[-1], alpha=0.9))
        w = torch.sub(w, velocities[-1] * rate)
    return w


def velocity_cloned(w, rate, K, loss):
    v = torch.zeros_like(w)
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
        v = v.clone().mul_(0.9).add_(grad)
        w = w - rate * v
    return w


def written_otherwise(w, rate, K, loss):
    w = w + torch.zeros_like(w)
    for _ in range(K):
        gradient = torch.autograd.grad(loss(w), [w], retain_graph=True, create_graph=True)[0]
        w = torch.addcmul(w, rate.expand_as(gradient), gradient, value=-1)
    return w


RIGHT_MOMENTUM = with_momentum(leaf=False, in_place=False)

WRONG = {
    "10.1": [
        (
            f"No gradient arrives, although the outer loss changes with the rate. {HIDDEN}",
            plain(torch.Tensor.item, False),
        ),
        (f"No gradient arrives, although the outer loss changes with the rate. {LAST}", plain(torch.Tensor.item)),
        (f"No gradient arrives, although the outer loss changes with the rate. {HIDDEN}", plain(torch.detach, False)),
        (
            f"Right at one step, wrong at two: the inner gradient is not differentiated, so this is the first-order "
            f"gradient. {LAST}",
            plain(create_graph=False),
        ),
        (f"only the last step is differentiated: the weights lose their history before it. {NEW}", plain(step=cut)),
        (
            f"exactly zero, but the outer loss changes with the rate: it was filled in, or multiplied away, and not "
            f"computed. {NEW}",
            filled_in(plain()),
        ),
        ("The outer loss does not depend on the rate at all.", lambda w, rate, K, loss: plain()(w, 0.1, K, loss)),
        (f"The number is right but for its sign. {NEW}", other_sign(plain())),
        (f"The weights walk up the loss: the sign of the update is wrong. {NEW}", plain(sign=1)),
        (f"The weights have not moved. {NEW}", steps(plain(), lambda K: 0)),
        (f"one step less than was asked for. {NEW}", steps(plain(), lambda K: max(K - 1, 1))),
        (f"one step more than was asked for. {NEW}", steps(plain(), lambda K: K + 1)),
        ("returned NoneType", lambda w, rate, K, loss: None),
        ("is not callable", 0.1),
    ],
    "10.2": [
        (
            f"Right at one step, wrong at two: only the last use of the rate counts: before it the weights lose their "
            f"history. {HIDDEN}",
            with_momentum(leaf=True, in_place=True),
        ),
        (f"before it the weights lose their history. {LAST}", with_momentum(leaf=True, in_place=False)),
        (
            "Right at one step, wrong at two: it raises RuntimeError: something that autograd had saved for the "
            f"backward pass was overwritten. {LAST}",
            with_momentum(leaf=False, in_place=True),
        ),
        (
            f"asked for without a graph, or it went into the velocity without one. {NEW}",
            with_momentum(False, False, create_graph=False),
        ),
        (
            f"wrong at five: the velocity keeps its value from step to step, and drops its history. {NEW}",
            with_momentum(False, False, keep=torch.detach),
        ),
        (f"or it went into the velocity without one. {LAST}", no_grad_velocity),
        (
            f"no gradient arrives: some line keeps the value and drops the history. {NEW}",
            lambda w, rate, K, loss: RIGHT_MOMENTUM(w, rate.item(), K, loss),
        ),
        (
            f"exactly zero, but the outer loss changes with the rate: it was filled in, or multiplied away, and not "
            f"computed. {NEW}",
            filled_in(RIGHT_MOMENTUM),
        ),
        (f"The number is right but for its sign. {NEW}", other_sign(RIGHT_MOMENTUM)),
        ("plain gradient descent: nothing of the last velocity is in the next", plain()),
        ("The velocity is an average here", lambda w, r, K, loss: momentum(w, r, K, loss, pull=(0.9, 0.1))),
        ("The weights walk up the loss", lambda w, rate, K, loss: RIGHT_MOMENTUM(w, -rate, K, loss)),
        ("The weights have not moved", steps(RIGHT_MOMENTUM, lambda K: 0)),
        ("one step less", steps(RIGHT_MOMENTUM, lambda K: max(K - 1, 1))),
        ("returned NoneType", lambda w, rate, K, loss: None),
        ("is not callable", "v"),
    ],
}
RIGHT = {
    "10.1": [plain(), plain(start=torch.clone), written_otherwise],
    "10.2": [RIGHT_MOMENTUM, list_of_velocities, velocity_cloned],
}
