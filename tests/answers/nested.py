"""Answers to the exercises of notebook 06: wrong ones with what must be said of them, and right ones."""

import math
from copy import deepcopy

import torch
from torch.func import functional_call
from torch.nn import functional as F
from torch.optim import Adam


def pair(rate_of, raw_of):
    return rate_of, raw_of


def same(number):
    return number


def filled_in(raw):
    return raw.detach().exp() + 0 * raw


def straight_through(raw):
    return raw.exp() + (raw - raw.detach())


def softplus(raw):
    return F.softplus(raw)


def inverse_softplus(rate):
    return rate + math.log(-math.expm1(-rate))


def loss_of(net, weights, batch):
    x, y = batch
    return F.cross_entropy(functional_call(net, weights, (x,)), y)


def leaves(net):
    return {name: p.detach().requires_grad_() for name, p in net.named_parameters()}


def learn_with(
    zero=lambda optimiser, net: optimiser.zero_grad(),
    place="before backward",
    on=lambda train, held_out: held_out,
    scale=1,
    average=lambda losses, train: sum(losses) / len(train),
    rate_of=torch.exp,
    start=leaves,
    update=lambda w, step: w - step,
    create_graph=True,
    carry=False,
    steps=lambda train: train,
    after=lambda log_alpha: None,
):
    """An outer loop with `zero` at a place, the outer loss `on` a batch, and so on."""

    def learn(net, log_alpha, optimiser, train, held_out, outer_steps):
        weights = start(net)
        for _ in range(outer_steps):
            weights = leaves_of(weights) if carry else start(net)
            losses = []
            if place == "at the start":
                zero(optimiser, net)
            for batch in steps(train):
                if place == "in the inner loop":
                    zero(optimiser, net)
                loss = loss_of(net, weights, batch)
                losses.append(loss.item())
                grads = torch.autograd.grad(loss, list(weights.values()), create_graph=create_graph)
                weights = {
                    name: update(w, rate_of(log_alpha) * g) for (name, w), g in zip(weights.items(), grads, strict=True)
                }
            outer_loss = loss_of(net, weights, on(train, held_out)) * scale
            if place == "before backward":
                zero(optimiser, net)
            if place == "step before backward":
                optimiser.step()
                zero(optimiser, net)
            outer_loss.backward()
            if place == "before step":
                zero(optimiser, net)
            after(log_alpha)
            if place != "step before backward":
                optimiser.step()
            yield outer_loss.item(), average(losses, train)

    return learn


def leaves_of(weights):
    return {name: w.detach().requires_grad_() for name, w in weights.items()}


def nothing(optimiser, net):
    pass


def module_only(optimiser, net):
    net.zero_grad()


def fill_with_zero(log_alpha):
    log_alpha.grad.zero_()


def step_in_the_inner_loop(net, log_alpha, optimiser, train, held_out, outer_steps):
    for _ in range(outer_steps):
        weights, total = leaves(net), 0.0
        for batch in train:
            loss = loss_of(net, weights, batch)
            total += loss.item()
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {n: w - log_alpha.exp() * g for (n, w), g in zip(weights.items(), grads, strict=True)}
            optimiser.step()
        optimiser.zero_grad()
        outer_loss = loss_of(net, weights, held_out)
        outer_loss.backward()
        yield outer_loss.item(), total / len(train)


def moved_by_hand(net, log_alpha, optimiser, train, held_out, outer_steps):
    for said in learn_with()(net, log_alpha, optimiser, train, held_out, outer_steps):
        with torch.no_grad():
            log_alpha.clamp_(max=-0.65)
        yield said


def a_list(net, log_alpha, optimiser, train, held_out, outer_steps):
    """Everything written differently: a list, a module's copy, gradients by torch.autograd.grad."""
    said = []
    for _ in range(outer_steps):
        weights, losses = dict(deepcopy(net).named_parameters()), []
        for x, y in train:
            losses.append(F.cross_entropy(functional_call(net, weights, (x,)), y))
            grads = torch.autograd.grad(losses[-1], list(weights.values()), create_graph=True)
            weights = {n: w.sub(g * log_alpha.exp()) for (n, w), g in zip(weights.items(), grads, strict=True)}
        outer_loss = loss_of(net, weights, held_out)
        (log_alpha.grad,) = torch.autograd.grad(outer_loss, [log_alpha])
        optimiser.step()
        said.append((outer_loss.detach(), torch.stack(losses).mean().detach()))
    return said


def no_yield(net, log_alpha, optimiser, train, held_out, outer_steps):
    for _ in learn_with()(net, log_alpha, optimiser, train, held_out, outer_steps):
        pass
    return []


LAST = {"on": lambda train, held_out: train[-1]}
SAMPLES = {"average": lambda losses, train: sum(losses) / sum(len(y) for _, y in train)}
ADDS_UP = {"zero": module_only, "place": "in the inner loop"}

WRONG = {
    "6.1": [
        ("At raw = -20 the rate is -20: it must be above zero", pair(same, same)),
        ("At raw = 0 the rate is 0: it must be above zero", pair(torch.abs, same)),
        ("At raw = -20 the rate is 0: it must be above zero", pair(torch.relu, same)),
        ("At raw = 0 the rate is 0: it must be above zero", pair(torch.square, torch.sqrt)),
        ("At raw = -20 the rate is 0", pair(lambda raw: 1 + raw.tanh(), lambda rate: (rate - 1).atanh())),
        ("At raw = -20 the derivative is zero: once", pair(lambda raw: raw.clamp(min=1e-4), same)),
        ("At raw = 0 the derivative is zero: once", pair(lambda raw: raw**2 + 1e-4, lambda rate: (rate - 1e-4) ** 0.5)),
        ("At raw = 0 the derivative is zero: once", pair(lambda raw: raw.abs() + 1e-4, lambda rate: rate - 1e-4)),
        (
            "Between raw = 0.1 and 1 the rate turns around",
            pair(lambda raw: (raw - 0.3) ** 2 + 1e-4, lambda rate: 0.3 + (rate - 1e-4) ** 0.5),
        ),
        ("autograd's derivative is None: its history is lost", pair(lambda raw: raw.detach().exp(), torch.log)),
        ("autograd's derivative is 0: its history is lost", pair(filled_in, torch.log)),
        ("finite differences give", pair(straight_through, torch.log)),
        ("rate_of returned float", pair(lambda raw: math.exp(raw.item()), math.log)),
        ("learning starts elsewhere", pair(softplus, torch.log)),
        ("learning starts elsewhere", pair(torch.exp, same)),
        (
            "raw_of(0.001) is -inf: no number gives this rate",
            pair(lambda raw: 0.001 + 3 * raw.sigmoid(), lambda rate: ((rate - 0.001) / 3).logit()),
        ),
        (
            "raw_of(2) is nan: no number gives this rate, and your rates lie between 2.06e-09 and 1",
            pair(torch.sigmoid, torch.logit),
        ),
        ("Learning cannot start at 2: your rates lie", pair(torch.sigmoid, lambda rate: rate.clamp(max=0.999).logit())),
        ("raw_of returned NoneType", pair(torch.exp, lambda rate: None)),
        ("rate_of returned NoneType", pair(lambda raw: None, torch.log)),
        ("Give two functions", torch.exp),
        ("Give two functions", (torch.exp, None)),
    ],
    "6.2": [
        ("The outer loss is taken on the last training batch", learn_with(**LAST, **SAMPLES, **ADDS_UP)),
        ("It is the sum of all gradients so far", learn_with(**SAMPLES, **ADDS_UP)),
        ("It is the sum of all gradients so far", learn_with(nothing)),
        ("a sum over batches was divided by the number of samples", learn_with(**SAMPLES)),
        ("yours is the sum over the batches", learn_with(average=lambda losses, train: sum(losses))),
        ("zero_grad() stands between backward() and step()", learn_with(place="before step")),
        ("step() comes before backward()", learn_with(place="step before backward")),
        ("Right at one step, wrong at two: the inner gradient is not", learn_with(create_graph=False)),
        ("no gradient arrives", learn_with(rate_of=lambda log_alpha: log_alpha.detach().exp())),
        ("no gradient arrives", learn_with(update=lambda w, step: (w - step).detach().requires_grad_())),
        (
            "Right at one step, wrong at two: the step keeps its history",
            learn_with(update=lambda w, step: w.detach() - step),
        ),
        ("exactly zero", learn_with(after=fill_with_zero)),
        ("right but for its sign", learn_with(after=lambda log_alpha: log_alpha.grad.neg_())),
        ("walk up the loss", learn_with(update=torch.add)),
        ("The rate is log_alpha itself", learn_with(rate_of=lambda log_alpha: log_alpha)),
        ("There is one step less", learn_with(steps=lambda train: train[:-1])),
        ("The second outer step starts from the weights", learn_with(carry=True)),
        ("divided by the number of samples, but cross_entropy", learn_with(scale=0.01)),
        (
            "module's own weights have got gradients",
            learn_with(start=lambda net: {n: p.clone() for n, p in net.named_parameters()}),
        ),
        ("something else than the optimiser moves log_alpha", moved_by_hand),
        ("optimiser.step() is called 10 times in 2 outer steps", step_in_the_inner_loop),
        ("Your function returned NoneType", lambda *given: None),
        ("Your function yielded float", lambda *given: (loss for loss, _ in learn_with()(*given))),
        ("yielded 0 times in 2 outer steps", no_yield),
        ("is called 0 times in 2 outer steps", lambda net, p, optimiser, *rest: learn_with()(net, p, Adam([p]), *rest)),
        ("so this is another program", learn_with(on=lambda train, held_out: train[0])),
        ("is not callable", 0.1),
    ],
}
RIGHT = {
    "6.1": [
        pair(torch.exp, torch.log),
        pair(torch.exp, math.log),
        pair(softplus, inverse_softplus),
        pair(lambda raw: 3 * raw.sigmoid(), lambda rate: (rate / 3).logit()),
        pair(lambda raw: (-raw).exp(), lambda rate: -rate.log().item()),
        pair(lambda raw: F.elu(raw) + 1, lambda rate: rate.log() if rate < 1 else rate - 1),
        pair(lambda raw: (raw + (raw**2 + 4).sqrt()) / 2, lambda rate: rate - 1 / rate),
    ],
    "6.2": [
        learn_with(),
        learn_with(place="at the start"),
        learn_with(place="in the inner loop"),
        learn_with(average=lambda losses, train: math.fsum(losses) / len(losses)),
        learn_with(start=lambda net: {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}),
        a_list,
    ],
}
