"""Answers to the exercises of notebook 07: wrong ones with what must be said of them, and right ones."""

import torch
from torch.autograd import forward_ad


def recursion(line, mu=0.9, share=1.0, sign=1, more=0, w_line=None):
    """Descent with momentum; v moves by `line`, which sees v, g, H v, m, dm / d rate, the same before, and the rate."""

    def carry(w, rate, K, loss):
        m, u, v = (torch.zeros_like(w) for _ in range(3))
        for _ in range(K + more):
            (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
            (product,) = torch.autograd.grad(g, w, v)
            with torch.no_grad():
                before = m, u
                m, u = mu * m + share * g, mu * u + share * product
                v = line(v, g, product, m, u, *before, rate)
                w -= sign * rate * m
        return w, v

    return carry


def right_line(v, g, product, m, u, old_m, old_u, rate):
    return v - m - rate * u


def forgets_nothing(w, rate, K, loss):
    """The derivative of m is added up, but never shrinks."""
    m, u, v = (torch.zeros_like(w) for _ in range(3))
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        (product,) = torch.autograd.grad(g, w, v)
        with torch.no_grad():
            m, u = 0.9 * m + g, u + product
            v -= m + rate * u
            w -= rate * m
    return w, v


def keeps_the_graph(w, rate, K, loss):
    m, u, v = (torch.zeros_like(w) for _ in range(3))
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        (product,) = torch.autograd.grad(g, w, v, retain_graph=True)
        m, u = 0.9 * m + g, 0.9 * u + product
        v = v - m - rate * u
        w = (w - rate * m).detach().requires_grad_()
    return w, v


def by_jacobian(w, rate, K, loss):
    """Right, by one graph through all steps."""
    rate = torch.tensor(rate, dtype=w.dtype, requires_grad=True)
    m = torch.zeros_like(w)
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        m = 0.9 * m + g
        w = w - rate * m
    rows = [torch.autograd.grad(number, rate, retain_graph=True)[0] for number in w.flatten()]
    return w, torch.stack(rows).view(w.shape)


def by_differences(w, rate, K, loss):
    def end(rate):
        m, at = torch.zeros_like(w), w.detach()
        for _ in range(K):
            at = at.detach().requires_grad_()
            (g,) = torch.autograd.grad(loss(at), at)
            m = 0.9 * m + g
            at = at - rate * m
        return at.detach()

    return end(rate), (end(rate + 1e-4) - end(rate - 1e-4)) / 2e-4


def updates_too_early(w, rate, K, loss):
    v = torch.zeros_like(w)
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
        with torch.no_grad():
            w -= rate * g
        (product,) = torch.autograd.grad(g, w, v)
        v = v - rate * product - g.detach()
    return w, v


def no_graph(w, rate, K, loss):
    v = torch.zeros_like(w)
    for _ in range(K):
        (g,) = torch.autograd.grad(loss(w), w)
        (product,) = torch.autograd.grad(g, w, v)
        w = (w - rate * g).detach().requires_grad_()
        v = v - rate * product - g
    return w, v


def by_dual_numbers(w, rate, K, loss):
    """Right: PyTorch carries the derivatives, in a level of its own for each step."""
    tangents = torch.zeros_like(w), torch.zeros_like(w)
    values = w.detach(), torch.zeros_like(w)
    for _ in range(K):
        with forward_ad.dual_level():
            dual_rate = forward_ad.make_dual(*torch.tensor([rate, 1.0], dtype=w.dtype))
            w, m = (forward_ad.make_dual(value.requires_grad_(), t) for value, t in zip(values, tangents, strict=True))
            (g,) = torch.autograd.grad(loss(w), w)
            m = 0.9 * m + g
            pairs = [forward_ad.unpack_dual(t) for t in (w - dual_rate * m, m)]
            values, tangents = zip(*((p.detach().clone(), t.detach().clone()) for p, t in pairs), strict=True)
    return values[0], tangents[0]


def walk(
    weights, rate, loss, outer, by=None, early=False, gradient_at=0, hessian_at=0, begin=-1, last=0, forwards=False
):
    w = weights[begin]
    (a,) = torch.autograd.grad(outer(w), w)
    total = 0.0
    steps = range(last, len(weights) - 1)
    for k in steps if forwards else reversed(steps):
        at, there = weights[k + hessian_at], weights[k + gradient_at]
        (g,) = torch.autograd.grad(loss(there), there)
        (product,) = torch.autograd.grad(torch.autograd.grad(loss(at), at, create_graph=True)[0], at, a)
        moved = a - (rate if by is None else by) * product
        total -= ((moved if early else a) * g).sum()
        a = moved
    return total


def walked(**faults):
    return lambda *given: walk(*given, **faults)


def descend(w, rate, K, loss, create_graph=True):
    for _ in range(K):
        (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
        w = w - rate * grad
    return w


def unrolled_again(weights, rate, loss, outer):
    """Right, but it builds the graph that the walk is there to avoid."""
    rate = torch.tensor(rate, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(outer(descend(weights[0], rate, len(weights) - 1, loss)), rate)[0]


def one_step_at_a_time(weights, rate, loss, outer):
    """Right: each step is taken again from its stored weights, and differentiated by autograd."""
    rate = torch.tensor(rate, dtype=torch.float64, requires_grad=True)
    (a,) = torch.autograd.grad(outer(weights[-1]), weights[-1])
    slopes = []
    for w in weights[-2::-1]:
        by_rate, a = torch.autograd.grad(descend(w, rate, 1, loss), [rate, w], a)
        slopes.append(by_rate.item())
    return sum(slopes)


def cut_at(last, create_graph=True):
    """Cut before each step for which last(k, K, span)."""

    def truncated(w, rate, K, span, loss):
        for k in range(K):
            if last(k, K, span):
                w = w.detach().requires_grad_()
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = w - rate * grad
        return w

    return truncated


def first_steps(w, rate, K, span, loss):
    return descend(descend(w, rate, span, loss), rate.detach(), K - span, loss)


def rate_cut_only(w, rate, K, span, loss):
    """The right number, with the graphs of all steps."""
    return descend(descend(w, rate.detach(), K - span, loss), rate, span, loss)


def in_two_loops(w, rate, K, span, loss):
    with torch.no_grad():
        for _ in range(K - span):
            with torch.enable_grad():
                (grad,) = torch.autograd.grad(loss(w), w)
            w = (w - rate * grad).requires_grad_()
    return descend(w, rate, span, loss)


WRONG = {
    "7.1": [
        (
            "Right at one step, wrong at two: v still moves as in plain descent",
            recursion(lambda v, g, product, m, u, m0, u0, rate: v - g - rate * product),
        ),
        ("Already at one step: the slope is exactly zero", recursion(lambda v, *_: v)),
        ("exactly zero", recursion(lambda v, g, product, m, u, m0, u0, rate: v - rate * u)),
        (
            "Already at one step: the number is right but for its sign",
            recursion(lambda v, g, product, m, u, m0, u0, rate: v + m + rate * u),
        ),
        (
            "wrong at two: the two parts of the product rule have different signs",
            recursion(lambda v, g, product, m, u, m0, u0, rate: v - m + rate * u),
        ),
        (
            "Right at one step, wrong at two: H v does not reach v, so this is the first-order",
            recursion(lambda v, g, product, m, u, *_: v - m),
        ),
        ("what is left is that of plain descent", recursion(lambda v, g, *_: v - g)),
        (
            "Right at two, wrong at five: the memory m depends on the rate too",
            recursion(lambda v, g, product, m, u, m0, u0, rate: v - m - rate * product),
        ),
        (
            "the part without a derivative is that of plain descent",
            recursion(lambda v, g, product, m, u, m0, u0, rate: v - g - rate * u),
        ),
        ("the rate is missing", recursion(lambda v, g, product, m, u, *_: v - m - u)),
        ("Right at two, wrong at five: each line for a derivative", forgets_nothing),
        ("it agrees in a few digits only", by_differences),
        ("the slope is not a finite number", recursion(lambda v, *_: v / 0)),
        ("The number is right, but the memory grows", keeps_the_graph),
        ("The number is right, but the memory grows", by_jacobian),
        ("they move as in plain descent", recursion(right_line, mu=0.0)),
        ("they have not moved", recursion(right_line, sign=0)),
        ("they walk up the loss", recursion(right_line, sign=-1)),
        ("one step more", recursion(right_line, more=1)),
        ("one step less", lambda w, rate, K, loss: recursion(right_line)(w, rate, max(K - 1, 1), loss)),
        ("m is an average", recursion(right_line, share=0.1)),
        ("At K = 1, network, it raises RuntimeError: something that autograd had saved", updates_too_early),
        ("autograd finds no graph", no_graph),
        ("returned NoneType: return two tensors", lambda w, rate, K, loss: None),
        ("returned Tensor: return two tensors", lambda w, rate, K, loss: w),
        ("your v is float", lambda w, rate, K, loss: (w, 0.0)),
        ("is not callable", 3),
    ],
    "7.2": [
        ("not on the network: the rate is a number of yours", lambda weights, rate, *given: walk(weights, 0.1, *given)),
        ("Right at one step, wrong at two: a never changes, so this is the first-order", walked(by=0.0)),
        ("Already at one step: a is moved back before it is used", walked(early=True)),
        ("Right on one weight, not on the network: the Hessian is taken at", walked(hessian_at=1)),
        ("Already at one step: the gradient is taken at the weights where the step ends", walked(gradient_at=1)),
        ("gradient and Hessian are taken where", walked(gradient_at=1, hessian_at=1)),
        ("right but for its sign", lambda *given: -walk(*given)),
        (
            "wrong at two: the term with the Hessian has the wrong sign",
            lambda weights, rate, *given: walk(weights, rate, *given, by=-rate),
        ),
        ("wrong at two: the rate is missing", walked(by=1.0)),
        ("wrong at two: the walk goes from the first step to the last", walked(forwards=True)),
        ("a begins with the outer loss's gradient at the start", walked(begin=0)),
        ("exactly zero", lambda *given: 0.0 * walk(*given)),
        ("exactly zero", walked(last=1)),
        ("Already at one step: the two lines are the chain rule", lambda *given: 2 * walk(*given)),
        ("The number is right, but the memory grows", unrolled_again),
        (
            "autograd finds no graph",
            lambda weights, *given: walk([w.detach() for w in weights], *given),
        ),
        ("returned None", lambda *given: None),
        (
            "returned a tensor of shape (16,)",
            lambda weights, *given: walk(weights, *given) * torch.ones_like(weights[0]),
        ),
        ("is not callable", 3),
    ],
    "7.3": [
        ("Right at one step, wrong at two: one step too many", cut_at(lambda k, K, span: k < K - span)),
        ("Right at one step, wrong at two: only one step has a history", cut_at(lambda k, K, span: True)),
        ("wrong at two: all steps have a history", cut_at(lambda k, K, span: False)),
        ("all steps have a history", cut_at(lambda k, K, span: k == 0)),
        ("the first steps are differentiated", first_steps),
        (
            "so this is the first-order slope of the last steps",
            cut_at(lambda k, K, span: k <= K - span, create_graph=False),
        ),
        ("no gradient reaches the rate", lambda *given: cut_at(lambda k, K, span: k <= K - span)(*given).detach()),
        ("no gradient reaches the rate", lambda w, rate, *given: cut_at(lambda *_: False)(w, rate.detach(), *given)),
        ("the slope is exactly zero", lambda w, rate, K, span, loss: descend(w, rate, K, loss).detach() + 0 * rate),
        (
            "but for its sign",
            lambda w, rate, *given: cut_at(lambda k, K, s: k <= K - s)(w, 2 * rate.detach() - rate, *given),
        ),
        ("The number is right, but the memory grows", rate_cut_only),
        ("The number is right, but the memory grows", cut_at(lambda k, K, span: k == K - span)),
        ("not those after K steps of descent", lambda w, rate, K, span, loss: descend(w, rate, K + 1, loss)),
        ("returned NoneType", lambda *given: None),
        ("is not callable", 3),
    ],
}
RIGHT = {
    "7.1": [recursion(right_line), by_dual_numbers],
    "7.2": [walk, one_step_at_a_time],
    "7.3": [cut_at(lambda k, K, span: k <= K - span), in_two_loops],
}
