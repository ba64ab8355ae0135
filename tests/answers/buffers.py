"""Answers to the exercises of notebook 04: wrong ones with what must be said of them, and right ones."""

import torch
from torch import nn


def loop(update, create_graph=True, chosen=lambda layers: layers, more=0):
    """An answer to 4.1 that takes each step by `update(layer, step)`, for the chosen layers."""

    def descend(layers, rate, K, loss):
        for _ in range(K + more):
            weights = [layer.weight for layer in layers]
            grads = torch.autograd.grad(loss(), weights, create_graph=create_graph)
            for layer, grad in zip(layers, grads, strict=True):
                if layer in chosen(layers):
                    update(layer, rate * grad)

    return descend


def rebind(layer, step):
    layer.weight = layer.weight - step


def uphill(layer, step):
    layer.weight = layer.weight + step


def copy_without_graph(layer, step):
    with torch.no_grad():
        layer.weight.copy_(layer.weight - step)


def copy_with_graph(layer, step):
    layer.weight.copy_(layer.weight - step)


def through_data(layer, step):
    layer.weight.data -= step.data


def register_again(layer, step):
    layer.register_buffer("weight", layer.weight - step)


def register_detached(layer, step):
    layer.register_buffer("weight", (layer.weight - step).detach().requires_grad_())


def wrap(layer, step):
    layer.weight = nn.Parameter(layer.weight - step)


def attribute(layer, step):
    new = layer.weight - step
    del layer.weight
    layer.weight = new


def zeros_filled_in(layers, rate, K, loss):
    loop(register_detached)(layers, rate, K, loss)
    for layer in layers:
        layer.weight = layer.weight + (rate - rate)


def number(layers, rate, K, loss):
    loop(rebind)(layers, rate.item(), K, loss)


def sign(layers, rate, K, loss):
    loop(rebind)(layers, 2 * rate.detach() - rate, K, loss)


def not_differentiated(layer, step):
    layer.weight = layer.weight.detach() - step


def nothing(layer, step):
    pass


def flattened(layer, step):
    layer.weight = (layer.weight - step).flatten()


def in_a_list(layers, rate, K, loss):
    for _ in range(K):
        old = [layer.weight for layer in layers]
        grads = torch.autograd.grad(loss(), old, create_graph=True)
        for layer, new in zip(layers, [w - rate * grad for w, grad in zip(old, grads, strict=True)], strict=True):
            setattr(layer, "weight", new)  # noqa: B010


def learn(
    cut=lambda w: w.detach().requires_grad_(), inside=lambda w: w, retain=None, create_graph=True, clear=True,
    after=lambda w: w, before_outer=lambda w: w, carry=True, new_optimiser=False, sign=1, more=0, step=True,
):  # fmt: skip
    """An answer to 4.2: the outer loop with these differences."""

    def answer(w, log_rate, K, loss, outer_loss, outer_steps):
        first, optimiser, rates = w, torch.optim.Adam([log_rate], lr=0.05), []
        for _ in range(outer_steps):
            w = cut(w if carry else first)
            optimiser = torch.optim.Adam([log_rate], lr=0.05) if new_optimiser else optimiser
            for _ in range(K + more):
                w = inside(w)
                (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
                w = w - log_rate.exp() * grad
            if clear:
                optimiser.zero_grad()
            (sign * outer_loss(before_outer(w))).backward(retain_graph=retain)
            if step:
                optimiser.step()
            rates.append(log_rate.exp().item())
            w = after(w)
        return rates

    return answer


def same(w):
    return w


def detached(w):
    return w.detach().requires_grad_()


def right_but_growing(w, log_rate, K, loss, outer_loss, outer_steps):
    """The gradient is taken for a fresh copy of the rate, so that only this outer step counts; the graph grows."""
    optimiser, rates = torch.optim.Adam([log_rate], lr=0.05), []
    for _ in range(outer_steps):
        copy = log_rate.detach().clone().requires_grad_()
        for _ in range(K):
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=True)
            w = w - copy.exp() * grad
        (log_rate.grad,) = torch.autograd.grad(outer_loss(w), copy, retain_graph=True)
        optimiser.step()
        rates.append(log_rate.exp().item())
    return rates


def cut_every_second_time(*given):
    steps = iter(range(100))
    return learn(cut=lambda w: w if next(steps) % 2 else detached(w), retain=True)(*given)


def gradient_taken_by_hand(w, log_rate, K, loss, outer_loss, outer_steps):
    optimiser, rates = torch.optim.Adam([log_rate], lr=0.05), []
    for _ in range(outer_steps):
        start = w.clone().detach()
        w = start.requires_grad_(True)
        for _ in range(K):
            (grad,) = torch.autograd.grad(loss(w), [w], create_graph=True)
            w = torch.sub(w, torch.exp(log_rate) * grad)
        (log_rate.grad,) = torch.autograd.grad(outer_loss(w), [log_rate])
        optimiser.step()
        rates += [float(log_rate.detach().exp())]
    return rates


def recorded_too_early(w, log_rate, K, loss, outer_loss, outer_steps):
    rates = gradient_taken_by_hand(w, log_rate, K, loss, outer_loss, outer_steps)
    return [0.1, *rates[:-1]]


def a_step_too_few(w, log_rate, K, *others):
    return learn()(w, log_rate, max(K - 1, 1), *others)


def zero_gradient(w, log_rate, K, loss, outer_loss, outer_steps):
    return learn(before_outer=lambda w: w.detach() + (log_rate - log_rate))(
        w, log_rate, K, loss, outer_loss, outer_steps
    )


WRONG = {
    "4.1": [
        ("A buffer is still the tensor that it was: it has been written to", loop(copy_without_graph)),
        ("A buffer is still the tensor that it was: it has been written to", loop(through_data)),
        ("Right on one weight, not on the network: it raises", loop(copy_with_graph)),
        ("A buffer holds a new tensor, as it should, but one without a history", loop(register_detached)),
        ("A weight has become an nn.Parameter", loop(wrap)),
        ("remember the old ones, but not the rate", number),
        ("Right on one weight, not on the network: only the first layer", loop(rebind, chosen=lambda all: all[:1])),
        ("Right on one weight, not on the network: only the last layer", loop(rebind, chosen=lambda all: all[-1:])),
        ("Right at one step, wrong at two: the inner gradient is not", loop(rebind, create_graph=False)),
        ("Right at one step, wrong at two: the step keeps its history", loop(not_differentiated)),
        ("exactly zero", zeros_filled_in),
        ("right but for its sign", sign),
        ("weights walk up the loss", loop(uphill)),
        ("one step more than was asked for", loop(rebind, more=1)),
        ("The weights have not moved", loop(nothing)),
        ("no longer a buffer", loop(attribute)),
        ("layers[0].weight is of shape (12,)", loop(flattened)),
        ("is not callable", None),
        ("takes 2 positional arguments but 4", lambda layers, rate: None),
    ],
    "4.2": [
        ("It raises RuntimeError: the weights that are carried over still remember", learn(cut=same)),
        ("The gradient passes through all earlier outer steps, and the graph grows", learn(cut=same, retain=True)),
        ("The rates are right, but the graph grows in each outer step", right_but_growing),
        ("Right at one inner step, wrong at two: only the last inner step", learn(inside=detached)),
        ("No gradient reaches the rate", learn(before_outer=detached)),
        ("weights without a history require a gradient only if", learn(before_outer=torch.Tensor.detach)),
        ("weights without a history require a gradient only if", learn(cut=torch.Tensor.detach)),
        ("start anew in each outer step", learn(carry=False)),
        ("the old one is not cleared", learn(clear=False)),
        ("optimiser is made anew", learn(new_optimiser=True)),
        ("Right at one inner step, wrong at two: the inner gradient is not", learn(create_graph=False)),
        ("The rate follows the inner loss", lambda w, log_rate, K, loss, _, n: learn()(w, log_rate, K, loss, loss, n)),
        ("The graph grows", cut_every_second_time),
        ("walks up the outer loss", learn(sign=-1)),
        ("exactly zero", zero_gradient),
        ("does not move it", learn(step=False)),
        ("Each rate is that from before the outer step", recorded_too_early),
        ("one inner step more", learn(more=1)),
        ("No gradient reaches the rate", learn(more=-1)),
        ("Right at one inner step, wrong at two: there is one inner step less", a_step_too_few),
        ("The rate after outer step 2 is", learn(cut=lambda w: 1.1 * w.detach().requires_grad_())),
        ("returned None: return a list with 6 numbers", lambda *given: None),
        ("returned a list of 5: return a list with 6 numbers", lambda *given: learn()(*given)[1:]),
        ("takes 2 positional arguments", lambda w, log_rate: []),
        ("is not callable", 0.1),
    ],
}
RIGHT = {
    "4.1": [loop(rebind), loop(register_again), in_a_list],
    "4.2": [
        learn(),
        learn(cut=same, after=detached),
        learn(cut=lambda w: w.data.clone().requires_grad_()),
        learn(cut=lambda w: nn.Parameter(w.data)),
        gradient_taken_by_hand,
    ],
}
