"""Answers to the exercises of notebook 00: wrong ones with what must be said of them, and right ones."""

import math

import torch


def loop(update, create_graph=True, more=0):
    """An answer whose inner loop does `update` to the weights, `more` times more often than asked."""

    def descend(w, log_rate, K, loss):
        for _ in range(K + more):
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = update(w, log_rate, grad)
        return w

    return descend


def exact(w, log_rate, grad):
    return w - log_rate.exp() * grad


def gradient_filled_in(w, log_rate, K, loss):
    return loop(exact)(w, log_rate.detach(), K, loss).detach() + 0 * log_rate


def learn(inner=exact, outer="held_out", reset=True, optimiser=torch.optim.Adam, order="zbs", steps=100, **more):
    """An answer to 0.2. `order` holds z for zero_grad, b for backward and s for the optimiser's step."""

    def program(w0, K, train, held_out, start_rate):
        log_rate = torch.tensor(math.log(start_rate), dtype=torch.float64, requires_grad=True)
        optim, w = optimiser([log_rate], lr=more.get("lr", 0.05)), w0.clone().requires_grad_()
        for _ in range(steps):
            if reset:
                w = w0.clone().requires_grad_()
            before = held_out(w) if outer == "before" else None
            w = loop(inner, more.get("create_graph", True), more.get("more", 0))(w, log_rate, K, train)
            outer_loss = before if outer == "before" else {"held_out": held_out, "train": train}[outer](w)
            calls = {"z": optim.zero_grad, "b": outer_loss.backward, "u": (-outer_loss).backward, "s": optim.step}
            for letter in order:
                calls[letter]()
            if reset == "detached":
                w = w.detach().requires_grad_()
        return more.get("give", torch.exp)(log_rate)

    return program


def carried_over(w0, K, train, held_out, start_rate):
    log_rate = torch.tensor(math.log(start_rate), requires_grad=True)
    optimiser, w = torch.optim.Adam([log_rate], lr=0.05), w0
    for _ in range(100):
        w = loop(exact)(w.detach().requires_grad_(), log_rate, K, train)
        optimiser.zero_grad()
        held_out(w).backward()
        optimiser.step()
    return log_rate.exp().item()


def the_rate_itself(w0, K, train, held_out, start_rate):
    rate = torch.tensor(start_rate, requires_grad=True)
    optimiser = torch.optim.SGD([rate], lr=2.0)
    for _ in range(3):
        w = loop(lambda w, rate, grad: w + rate * grad)(w0.clone().requires_grad_(), rate, K, train)
        optimiser.zero_grad()
        held_out(w).backward()
        optimiser.step()
    return rate


def by_grad(w0, K, train, held_out, start_rate):
    """The same without an optimiser: the sign of the meta-gradient moves the logarithm, in steps that shrink."""
    log_rate = torch.tensor(math.log(start_rate), dtype=torch.float64)
    for step in range(150):
        log_rate.requires_grad_()
        w = loop(exact)(w0.clone().requires_grad_(), log_rate, K, train)
        (gradient,) = torch.autograd.grad(held_out(w), log_rate)
        log_rate = log_rate.detach() - 0.2 * 0.97**step * gradient.sign()
    return log_rate.exp()


def of_no_use(w0, K, train, held_out, start_rate):
    """As the exercise starts: the outer loss is that of the training points, and nothing is done with it."""
    log_rate = torch.tensor(math.log(start_rate), requires_grad=True)
    train(loop(exact)(w0.clone().requires_grad_(), log_rate, K, train))
    return log_rate.exp().item()


WRONG = {
    "0.1": [
        ("The outer loss is the same whatever", loop(lambda w, r, g: w - 0.1 * g)),
        ("The outer loss is the same whatever", loop(lambda w, r, g: w - 0.3 * g)),
        ("The weights have not moved", loop(lambda w, r, g: w)),
        ("uses the logarithm of the rate", loop(lambda w, r, g: w - r * g)),
        ("uses the reciprocal of the rate", loop(lambda w, r, g: w - g / r.exp())),
        ("walk up the loss: the sign of the update", loop(lambda w, r, g: w + r.exp() * g)),
        ("no gradient arrives", loop(lambda w, r, g: w - r.exp().item() * g)),
        ("no gradient arrives", loop(lambda w, r, g: (w - r.exp() * g).detach().requires_grad_())),
        ("exactly zero", gradient_filled_in),
        ("Right at one step, wrong at two: the inner gradient is not", loop(exact, create_graph=False)),
        ("here is one step more", loop(exact, more=1)),
        ("The weights have not moved", loop(exact, more=-1)),
        ("a leaf that requires grad may not be written to", loop(lambda w, r, g: w.sub_(r.exp() * g))),
        ("returned NoneType", lambda w, log_rate, K, loss: None),
        ("is not callable", 0.5),
    ],
    "0.2": [
        ("held_out is never called, and the rate comes back", of_no_use),
        ("best rate for the training points", learn(outer="train")),
        ("weights from before the inner steps", learn(outer="before")),
        ("pile up", learn(order="bs")),
        ("The order is: clear, backward, step", learn(order="bzs")),
        ("does not lead back to it", learn(inner=lambda w, r, g: w - r.exp().item() * g)),
        ("does not lead back to it", learn(inner=lambda w, r, g: (w - r.exp() * g).detach().requires_grad_())),
        ("first-order gradient", learn(create_graph=False)),
        ("let the weights start anew", learn(reset=False)),
        ("only some outer steps begin at w0", carried_over),
        ("the outer loop walks up", learn(order="zus")),
        ("Neither loss is ever called", learn(steps=0)),
        ("After 5 outer steps the rate is on its way", learn(steps=5)),
        ("After 40 outer steps the rate is on its way", learn(steps=40)),
        ("The inner loop walks up its loss", learn(inner=lambda w, r, g: w + r.exp() * g)),
        ("the best rate for 2 inner steps, where K is 1", learn(more=1)),
        ("logarithm of the right rate", learn(give=torch.clone)),
        ("not positive", the_rate_itself),
        ("returned nothing that is a number", learn(give=lambda log_rate: None)),
        ("is not callable", 0.5),
    ],
}
RIGHT = {
    "0.1": [
        loop(exact),
        loop(lambda w, r, g: torch.sub(w, g.mul(torch.exp(r)))),
        lambda w, log_rate, K, loss: loop(lambda w, r, g: w - r * g)(w, log_rate.exp(), K, loss),
    ],
    "0.2": [
        learn(),
        learn(optimiser=torch.optim.RMSprop, lr=0.02, steps=250),
        by_grad,
    ],
}
