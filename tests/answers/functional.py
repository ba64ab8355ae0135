"""Answers to the exercises of notebook 05: wrong ones with what must be said of them, and right ones."""

import torch
from torch.func import functional_call
from torch.nn import functional as F


def loss_of(net, weights, batch):
    return F.mse_loss(functional_call(net, weights, batch[:1]), batch[1])


def leaves(net):
    return {name: p.detach().requires_grad_() for name, p in net.named_parameters()}


def subtract(weights, steps):
    return {name: w - steps[name] for name, w in weights.items()}


def by_layer(rates, name):
    return rates[name.partition(".")[0]] if isinstance(rates, dict) else rates


def walk(update=subtract, rate_of=by_layer, start=leaves, create_graph=True, more=0, first="inner", last="outer"):
    """An answer to 5.2 and to 5.3: `more` steps than asked for, `update` from weights and steps, losses on batches."""

    def outer_loss(net, rates, K, inner, outer):
        batches, weights = {"inner": inner, "outer": outer}, start(net)
        for _ in range(K + more):
            loss = loss_of(net, weights, batches[first])
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=create_graph)
            steps = {name: rate_of(rates, name) * g for name, g in zip(weights, grads, strict=True)}
            weights = update(weights, steps)
        return loss_of(net, weights, batches[last])

    return outer_loss


def detached(weights, steps):
    return {name: w.detach().requires_grad_() for name, w in subtract(weights, steps).items()}


def only_the_weights_detached(weights, steps):
    return {name: w.detach() - steps[name] for name, w in weights.items()}


def data(weights, steps):
    return {name: (w.data - steps[name].data).requires_grad_() for name, w in weights.items()}


def in_place(weights, steps):
    weights = {name: w if w.grad_fn else w.clone() for name, w in weights.items()}
    for name, w in weights.items():
        w -= steps[name]
    return weights


def filled_in(answer):
    """The right loss, and a gradient of zero."""

    def outer_loss(net, rates, K, inner, outer):
        given = rates.values() if isinstance(rates, dict) else [rates]
        return answer(net, rates, K, inner, outer).detach() + sum(0 * rate for rate in given)

    return outer_loss


def into_the_module(write):
    def outer_loss(net, rate, K, inner, outer):
        for _ in range(K):
            grads = torch.autograd.grad(F.mse_loss(net(inner[0]), inner[1]), list(net.parameters()), create_graph=True)
            for p, g in zip(net.parameters(), grads, strict=True):
                write(p, rate * g)
        return F.mse_loss(net(outer[0]), outer[1])

    return outer_loss


def write_data(p, step):
    p.data -= step


def own_forward_pass(net, rate, K, inner, outer):
    """The module's own weights in every forward pass but the last."""
    weights = dict(net.named_parameters())
    for _ in range(K):
        grads = torch.autograd.grad(F.mse_loss(net(inner[0]), inner[1]), list(net.parameters()), create_graph=True)
        weights = {name: w - rate * g for (name, w), g in zip(weights.items(), grads, strict=True)}
    return loss_of(net, weights, outer)


def own_last_pass(net, rate, K, inner, outer):
    walk()(net, rate, K, inner, outer)
    return F.mse_loss(net(outer[0]), outer[1])


def from_the_start(net, rate, K, inner, outer):
    weights = leaves(net)
    for _ in range(K):
        grads = torch.autograd.grad(loss_of(net, weights, inner), list(weights.values()), create_graph=True)
        weights = {n: p.detach() - rate * g for (n, p), g in zip(net.named_parameters(), grads, strict=True)}
    return loss_of(net, weights, outer)


def loss_inside(net, rate, K, inner, outer):
    """`torch.func.grad` in place of `torch.autograd.grad`, and a step that is a function of its own."""
    gradient = torch.func.grad(lambda weights: loss_of(net, weights, inner))
    weights = {name: p.detach().clone() for name, p in net.named_parameters()}
    for _ in range(K):
        grads = gradient(weights)
        weights = {name: torch.sub(w, rate * grads[name]) for name, w in weights.items()}
    return loss_of(net, weights, outer)


def by_prefix(net, rates, K, inner, outer):
    """Layer by layer, the rate found by the layer's name."""
    weights = leaves(net)
    for _ in range(K):
        grads = torch.autograd.grad(loss_of(net, weights, inner), list(weights.values()), create_graph=True)
        grads = dict(zip(weights, grads, strict=True))
        for layer, rate in rates.items():
            mine = {name: w - rate * grads[name] for name, w in weights.items() if name.startswith(layer + ".")}
            weights = weights | mine
    return loss_of(net, weights, outer)


def same(name):
    return lambda rates, _: rates[name]


def in_order(rates, name):
    """As zip(layers, rates.values()) would do it."""
    return list(rates.values())[int(name[2]) - 1]


def only(layer):
    return lambda rates, name: rates[name[:3]] if name.startswith(layer) else rates[name[:3]].detach()


def except_for(layer, change):
    return lambda rates, name: change(rates[name[:3]]) if name.startswith(layer) else rates[name[:3]]


WRONG = {
    "5.1": [
        ("name 'loss' is not defined", "EBGFA"),
        ("name 'grad' is not defined", "EGCHA"),
        ("Right at one step, wrong at two: the inner gradient is not differentiated", "EGBCA"),
        ("Right at one step, wrong at two: the inner gradient is not differentiated", "EGHBCA"),
        ("Right at one step, wrong at two: the step keeps its history, but the weights", "EGHFA"),
        ("Right at one step, wrong at two: only the last step is differentiated", "EGDBFA"),
        ("a graph was used after it had been freed", "EGBHCA"),
        ("Each step moves the weights twice", "EGHCFA"),
        ("The weights have not moved", "EGHA"),
        ("The weights have not moved", "AEGHC"),
        ("line D is indented deeper, but no `for` stands above it", "DEGHCA"),
        ("line B is indented deeper, but no `for` stands above it", "ABCDEFGH"),
        ("no indented line follows the `for`", "EA"),
        ("No line of your program returns anything", "EGHC"),
        ("Line G stands there 2 times", "EGGHCA"),
        ("There is no line 'X'", "EGHCX"),
        ("Give the letters", None),
        ("Give the letters", [1, 2, 3]),
    ],
    "5.2": [
        ("Your function changes the module's own weights", into_the_module(write_data)),
        ("a leaf that requires grad may not be written to", into_the_module(torch.Tensor.sub_)),
        ("no gradient arrives: some line keeps the value", walk(detached)),
        ("no gradient arrives: some line keeps the value", walk(data)),
        ("exactly zero", filled_in(walk())),
        ("Right at one step, wrong at two: the inner gradient is not", walk(create_graph=False)),
        ("Right at one step, wrong at two: the step keeps its history", walk(only_the_weights_detached)),
        ("Right at one step, wrong at two: it raises RuntimeError: something that autograd had saved", walk(in_place)),
        ("Right at one step, wrong at two: every step's gradient is taken at the module's own", own_forward_pass),
        ("Right at one step, wrong at two: every step is taken from the first weights", from_the_start),
        ("This is the loss of the module's own weights", own_last_pass),
        ("The outer loss is taken on the inner batch", walk(last="inner")),
        ("The inner steps use the outer batch", walk(first="outer")),
        ("The inner and the outer batch have changed places", walk(first="outer", last="inner")),
        ("There is one step less", walk(more=-1)),
        ("There is one step more", walk(more=1)),
        ("a single step, however many", lambda net, rate, K, inner, outer: walk()(net, rate, 1, inner, outer)),
        ("weights walk up the loss", walk(rate_of=lambda rate, name: -rate)),
        ("so this is another program", walk(rate_of=lambda rate, name: rate / 20)),
        ("the step returned NoneType", lambda net, rate, K, inner, outer: None),
        ("is not callable", 3),
    ],
    "5.3": [
        ("Every layer moves with the rate of fc1", walk(rate_of=same("fc1"))),
        ("Every layer moves with the rate of fc3", walk(rate_of=same("fc3"))),
        ("Every layer moves with the mean of the rates", walk(rate_of=lambda r, name: sum(r.values()) / len(r))),
        ("Every layer moves with the sum of the rates", walk(rate_of=lambda r, name: sum(r.values()))),
        ("The rates are handed out in the order of the dict", walk(rate_of=in_order)),
        ("the first has the last one's", walk(rate_of=lambda r, name: r[f"fc{4 - int(name[2])}"])),
        ("The layer fc2 does not move", walk(rate_of=except_for("fc2", lambda rate: 0 * rate))),
        ("The layer fc3 moves, but no gradient reaches its rate", walk(rate_of=except_for("fc3", torch.Tensor.detach))),
        ("a gradient reaches the rate of fc2 only", walk(rate_of=only("fc2"))),
        ("No layer's bias moves", walk(rate_of=lambda r, name: r[name[:3]] * name.endswith("weight"))),
        ("Right at one step, wrong at two: the inner gradient is not", walk(create_graph=False)),
        ("no gradient arrives", walk(detached)),
        ("no gradient arrives", walk(data)),
        ("exactly zero", filled_in(walk())),
        ("number is right but for its sign", lambda *given: 2 * walk()(*given).detach() - walk()(*given)),
        (
            "Your function changes the module's own weights",
            lambda net, rates, *given: into_the_module(write_data)(net, rates["fc1"], *given),
        ),
        ("There is one step less", walk(more=-1)),
        ("KeyError", walk(rate_of=lambda r, name: r[name])),
        ("the step returned NoneType", lambda net, rates, K, inner, outer: None),
        ("is not callable", {}),
    ],
}
RIGHT = {
    "5.1": ["EGHCA", "EGDHCA", "EGHCDA", ["E", "G", "H", "D", "C", "A"], "e, g, h, c, a"],
    "5.2": [
        walk(),
        walk(start=lambda net: dict(net.named_parameters())),
        walk(start=lambda net: {name: p.clone() for name, p in net.named_parameters()}),
        loss_inside,
    ],
    "5.3": [
        walk(),
        by_prefix,
        walk(rate_of=lambda rates, name: next(rate for layer, rate in rates.items() if layer in name)),
    ],
}
