"""Answers to the exercises of notebook 03: wrong ones with what must be said of them, and right ones."""

import torch

from metalib.referee import referee


def loop(update, rate_of=lambda rate: rate, create_graph=True):
    """An answer whose inner loop sets the weights to `update(w, step)`."""

    def descend(w, rate, K, loss):
        for _ in range(K):
            (grad,) = torch.autograd.grad(loss(w), w, create_graph=create_graph)
            w = update(w, rate_of(rate) * grad)
        return w

    return descend


def steps_more(more):
    return lambda w, rate, K, loss: loop(torch.sub)(w, rate, K + more, loss)


def a_step_too_few(w, rate, K, loss):
    return loop(torch.sub)(w, rate, max(K - 1, 1), loss)


def from_data(w, step):
    return w.data - step


def through_data(w, step):
    w.data -= step
    return w


def leaf(w, step):
    return (w - step).detach().requires_grad_()


def zeros_filled_in(w, rate, K, loss):
    return loop(leaf)(w, rate, K, loss) + (rate - rate)


def value_of(rate):
    """The same number, with a derivative of the wrong sign."""
    return 2 * rate.detach() - rate


def claim_of(step, rate):
    """What autograd says, or None."""
    leaf = rate.detach().clone().requires_grad_()
    loss = step(leaf)
    return torch.autograd.grad(loss, leaf, allow_unused=True)[0] if loss.requires_grad else None


def own(high=1e-4, low=-1e-4, rtol=1e-3, atol=1e-4, dtype=torch.float64):
    """A reader's referee: differences between rate + low and rate + high, and these tolerances."""

    def verdict(step, rate):
        rate = rate.detach().to(dtype)
        claimed, losses = claim_of(step, rate), [step(rate + by).item() for by in (low, 0, high)]
        if len(set(losses)) == 1:
            return "independent"
        slope = (losses[2] - losses[0]) / (high - low)
        silent = claimed is None or not claimed.any()
        if silent and abs(slope) > atol:
            return "cut"
        return "right" if abs((claimed or 0) - slope) <= rtol * abs(slope) + atol else "wrong"

    return verdict


def never_looks_elsewhere(step, rate):
    return "cut" if claim_of(step, rate) is None else "right"


def zero_is_a_cut(step, rate):
    claimed, verdict = claim_of(step, rate), own()(step, rate)
    return verdict if verdict == "independent" or (claimed is not None and claimed.any()) else "cut"


def none_is_a_cut(step, rate):
    return "cut" if claim_of(step, rate) is None else own()(step, rate)


def flat_is_independent(step, rate):
    up, down = (step(rate.detach() + by).item() for by in (1e-4, -1e-4))
    return "independent" if abs(up - down) < 1e-7 else own()(step, rate)


def zeros_are_wrong(step, rate):
    claimed, verdict = claim_of(step, rate), own()(step, rate)
    return "wrong" if verdict == "cut" and claimed is not None else verdict


def believes_the_first():
    """Tests a number once, at one step, and says the same of all later ones."""
    first = {}

    def verdict(step, rate):
        said = own()(step, rate)
        if said not in ("right", "wrong"):
            return said
        return first.setdefault("number", said)

    return verdict


def backward_only(step, rate):
    step(rate).backward()
    return own()(step, rate)


WRONG = {
    "3.1": [
        ("rate and the weights each lose their history", loop(from_data, rate_of=torch.Tensor.item)),
        ("One cut is left: the weights keep their history, but the rate", loop(torch.sub, rate_of=torch.Tensor.item)),
        ("One cut is left: the weights keep their history, but the rate", loop(torch.sub, rate_of=torch.detach)),
        ("Right at one step, wrong at two: one cut is left: the rate arrives", loop(from_data)),
        ("without any history: no gradient reaches the rate, nor the first", loop(leaf)),
        ("rate and the weights each lose their history", loop(through_data)),
        ("exactly zero", zeros_filled_in),
        ("Right at one step, wrong at two: the inner gradient is not", loop(torch.sub, create_graph=False)),
        ("right but for its sign", loop(torch.sub, rate_of=value_of)),
        ("weights walk up the loss", loop(torch.add)),
        ("one step more than was asked for", steps_more(1)),
        ("The weights have not moved", steps_more(-1)),
        ("Right at one step, wrong at two: there is one step less", a_step_too_few),
        ("returned NoneType", lambda w, rate, K, loss: None),
        ("returned tuple", lambda w, rate, K, loss: (w, rate)),
        ("is not callable", None),
        ("takes 3 positional arguments but 4", lambda w, rate, K: w),
    ],
    "3.2": [
        (
            'On "written through .data", K = 1, network, you say "right", it is "cut": autograd None',
            lambda step, rate: "right",
        ),
        ("never looks at the outer loss at another rate", lambda step, rate: "right"),
        (
            '"a gradient filled with zeros", K = 1, network, you say "right", it is "cut": autograd 0',
            never_looks_elsewhere,
        ),
        ("Your difference, on one side and 1e-01 wide, gives", own(high=0.1, low=0)),
        ("Your difference, on both sides and 5e-02 wide, gives", own(high=0.05, low=-0.05)),
        (
            'all those at one inner step among them. On "create_graph forgotten", K = 2, one weight, you say "right"',
            own(rtol=0.5),
        ),
        ('"create_graph forgotten", K = 2, network, rate 0.005, you say "right", it is "wrong"', own(rtol=0.02)),
        ("all those at one inner step among them", believes_the_first()),
        ("Your rates lie 1e-06 apart, too near for float32", own(1e-6, -1e-6, dtype=torch.float32)),
        ("Your rates lie 1e-14 apart, too near for float64", own(1e-14, -1e-14)),
        ('"a rate at its best", K = 2, network, you say "cut", it is "right": autograd 0', zero_is_a_cut),
        ('"a rate at its best", K = 2, network, you say "independent"', flat_is_independent),
        ("A slope of zero can be the truth", own(atol=0)),
        ('"a rate that is not used", K = 1, network, you say "cut", it is "independent"', none_is_a_cut),
        ('"a gradient filled with zeros", K = 1, network, you say "wrong", it is "cut"', zeros_are_wrong),
        ('On "no graph at all", K = 1, network, your function raises RuntimeError: element 0', backward_only),
        ("your function returns None: return one of 'cut'", lambda step, rate: None),
        ("your function returns 'Right'", lambda step, rate: "Right"),
        ("give the function itself", "right"),
    ],
}
RIGHT = {
    "3.1": [
        loop(torch.sub),
        loop(lambda w, step: w.clone().sub_(step)),
        lambda w, rate, K, loss: loop(torch.add, rate_of=torch.neg)(w, rate, K, loss),
    ],
    "3.2": [
        own(),
        own(high=1e-6, low=-1e-6),
        own(high=1e-7, low=0),
        own(high=1e-3, low=-1e-3, dtype=torch.float32),
        lambda step, rate: referee(lambda meta: step(meta["rate"]), {"rate": rate}).verdict,
    ],
}
