"""The referee on steps whose true gradient is known, right and wrong ones, and on steps that it must refuse."""

import math

import pytest
import torch

from metalib.differences import estimate
from metalib.referee import VERDICTS, Undecided, judge, referee
from metalib.settings import Settings


def number(value):
    return torch.tensor(value, dtype=torch.float64)


RATE = {"rate": number(0.3)}


def cube(meta):
    return meta["rate"] ** 3


class WrongBackward(torch.autograd.Function):
    """x³ with a derivative that is off by a part in a thousand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream * 3 * x**2 * 1.001


class SlightlyWrongBackward(WrongBackward):
    """Off by a part in a hundred thousand."""

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream * 3 * x**2 * 1.00001


class ZeroBackward(WrongBackward):
    @staticmethod
    def backward(ctx, upstream):
        return torch.zeros_like(upstream)


STEPS = {
    "right": [
        cube,
        lambda meta: torch.exp(5 * meta["rate"]).sin(),
        lambda meta: (meta["rate"] - 0.3) ** 4,
        lambda meta: meta["rate"] + 40 * (meta["rate"] - 0.300004).relu() ** 1.5,  # bends a hair's breadth away
        lambda meta: torch.nn.functional.elu(1e3 * (meta["rate"] - 0.300004)) + meta["rate"],
        lambda meta: (meta["rate"] - 0.29).relu(),  # a kink, but not here
        lambda meta: (meta["rate"] - 0.3) ** 2,  # a true zero: the value depends, the slope is 0
        lambda meta: 1e-9 * meta["rate"] ** 3,
        lambda meta: 1e12 * meta["rate"] ** 3,
        lambda meta: 1e6 + meta["rate"],  # a small slope on a large value
        lambda meta: meta["rate"].reshape(1) ** 2,  # one number, though not a scalar
    ],
    "cut": [
        lambda meta: meta["rate"].detach() ** 3,
        lambda meta: meta["rate"].item() * torch.ones((), dtype=torch.float64, requires_grad=True),
        lambda meta: ZeroBackward.apply(meta["rate"]),
        lambda meta: (meta["rate"].detach() - 0.3) ** 2 + 0 * meta["rate"].detach(),  # cut at a place where it is flat
    ],
    "independent": [
        lambda meta: number(2.0),
        lambda meta: number(2.0).requires_grad_(),
        lambda meta: 0 * meta["rate"] + 1,
    ],
    "wrong": [
        lambda meta: WrongBackward.apply(meta["rate"]),
        lambda meta: SlightlyWrongBackward.apply(meta["rate"]),
        lambda meta: meta["rate"] ** 2 + meta["rate"].detach() ** 2,  # half of it is cut
        lambda meta: meta["rate"] - meta["rate"].detach() + 1,  # claims 1 where the value does not move
    ],
    "nan": [
        lambda meta: meta["rate"] * math.nan,
        lambda meta: meta["rate"] / 0,
        lambda meta: (meta["rate"] - 0.3).abs().sqrt() * 0 + meta["rate"],  # 0 · inf in the backward pass
    ],
}


@pytest.mark.parametrize(("verdict", "step"), [(v, s) for v, steps in STEPS.items() for s in steps])
def test_verdict(verdict, step):
    report = referee(step, RATE)
    assert report.verdict == report.by_parameter["rate"] == verdict, str(report)


def test_right_reports_both_numbers():
    report = referee(cube, RATE)
    assert report.claimed["rate"].item() == pytest.approx(0.27)
    assert report.expected["rate"].item() == pytest.approx(0.27, rel=1e-10)
    assert report.error is None
    assert str(report).splitlines()[1] == "  rate: autograd 0.27, finite differences 0.27 (right)"


def test_an_error_in_the_forward_pass_is_kept():
    def step(meta):
        raise ZeroDivisionError("no luck")

    report = referee(step, RATE)
    assert report.verdict == "raises" and isinstance(report.error, ZeroDivisionError)
    assert "ZeroDivisionError: no luck" in str(report)
    assert report.expected["rate"] is None


def test_an_error_in_the_backward_pass_still_has_finite_differences():
    def step(meta):
        w = meta["rate"] * 1
        square = w**2
        w += 0  # a write to what the square has saved
        return square * 3

    report = referee(step, RATE)
    assert report.verdict == "raises" and "modified by an inplace operation" in str(report.error)
    assert report.claimed["rate"] is None
    assert report.expected["rate"].item() == pytest.approx(6 * 0.3, rel=1e-9)


def test_every_number_of_every_tensor_is_judged():
    meta = {"a": torch.rand(2, 3, dtype=torch.float64), "b": number(0.5), "c": number(1.0)}

    def step(meta):
        return (meta["a"] ** 2).sum() * meta["b"].detach()

    report = referee(step, meta)
    assert report.by_parameter == {"a": "right", "b": "cut", "c": "independent"}
    assert report.verdict == "cut"
    assert torch.allclose(report.expected["a"], meta["a"], rtol=1e-9)


def test_one_wrong_entry_among_right_ones_is_found():
    mask = torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float64)

    def step(meta):
        w = meta["w"]
        return (torch.where(mask.bool(), w, w.detach() + 0 * w) ** 3).sum()

    assert referee(step, {"w": torch.rand(4, dtype=torch.float64) + 0.5}).verdict == "wrong"


def test_the_worst_verdict_comes_first():
    assert list(VERDICTS) == ["raises", "nan", "wrong", "cut", "independent", "right"]


def test_float32_meta_parameters_are_judged_in_float64_and_left_alone():
    meta = {"rate": torch.tensor(0.3, requires_grad=True)}
    report = referee(cube, meta)
    assert report.verdict == "right" and report.expected["rate"].dtype == torch.float64
    assert meta["rate"].grad is None and meta["rate"].dtype == torch.float32


def test_a_step_that_uses_the_global_random_state_is_repeatable_and_the_state_is_put_back():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    report = referee(lambda meta: meta["rate"] * torch.rand((), dtype=torch.float64), RATE)
    assert report.verdict == "right"
    assert torch.equal(torch.rand(2), expected)


def test_a_step_with_a_bounded_domain_is_judged_inside_it():
    def step(meta):
        if meta["rate"] <= 0.0005:
            raise ValueError("the rate must be above 0.0005")
        return meta["rate"].log()

    assert referee(step, {"rate": number(0.0006)}).verdict == "right"


def walks(generator):
    return lambda meta: meta["rate"] * torch.rand((), dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(
    ("step", "meta", "sentence"),
    [
        (walks(torch.Generator()), RATE, "another loss each time"),
        (lambda meta: meta["rate"] * torch.ones(3), RATE, r"shape \(3,\): return the outer loss as one number"),
        (lambda meta: 0.5, RATE, "returned float"),
        (lambda meta: meta["rate"].float(), RATE, "torch.float32: build weights and data in float64"),
        (lambda meta: (meta["rate"] - 0.3).abs() + 1, RATE, "finite differences of rate do not settle"),
        (lambda meta: (meta["rate"] - 0.3).relu() + 5, RATE, "finite differences of rate do not settle"),
        (lambda meta: (50 * meta["rate"]).floor() + meta["rate"], RATE, "finite differences of rate do not settle"),
        (lambda meta: (meta["rate"] - 0.3).abs(), RATE, "the outer loss is 0: it has converged"),
        (cube, [RATE["rate"]], "give a dict of floating tensors"),
        (cube, {}, "give a dict of floating tensors"),
        (cube, {"rate": 0.3}, "give a dict of floating tensors"),
        (cube, {"rate": torch.tensor(3)}, "give a dict of floating tensors"),
        (cube, RATE | {3: RATE["rate"]}, "3: .* give a dict of floating tensors"),
    ],
)
def test_what_cannot_be_judged_gets_a_sentence(step, meta, sentence):
    with pytest.raises(Undecided, match=sentence):
        referee(step, meta)


@pytest.mark.parametrize(
    ("f", "x", "derivative"),
    [
        (math.exp, 0.0, 1.0),
        (math.sin, 2.0, math.cos(2.0)),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: (1 - 2.4 * x) ** 40, 1.0, -96 * (-1.4) ** 39),
        (math.log, 1e-4, 1e4),
        (lambda x: max(x, 0.0), 1e-4, 1.0),  # a kink within the first widths
    ],
)
def test_the_estimate_is_within_its_own_error(f, x, derivative):
    def safe(x):
        try:
            return f(x)
        except ValueError:  # the logarithm of a negative number
            return math.nan

    value, error, _ = estimate(safe, x, None, 0.0, 1e-6)
    assert abs(value - derivative) <= 4 * error
    assert error <= 1e-6 * max(1.0, abs(derivative))


def test_the_estimate_where_nothing_is_finite():
    value, error, _ = estimate(lambda x: math.inf, 1.0, None, 0.0, 1e-6)
    assert math.isnan(value) and error == math.inf


def number_cut_half_way(meta):
    """w ← w - rate·h·w twice, the second update hidden, with a rate of 1e-9 on a curvature of 1e8."""
    w = 1 - meta["rate"] * 1e8 * 1
    w = w - (meta["rate"] * 1e8 * w).detach()
    return w**2


def test_a_tiny_rate_on_a_steep_loss():
    """The first widths, 1e6 times the rate, see nothing but an explosion."""
    true = referee(lambda meta: (1 - meta["rate"] * 1e8) ** 4, {"rate": number(1e-9)})
    assert true.verdict == "right"
    report = referee(number_cut_half_way, {"rate": number(1e-9)})
    assert report.verdict == "wrong"
    assert report.expected["rate"].item() == pytest.approx(-4e8 * 0.9**3, rel=1e-6)


@pytest.mark.parametrize(("start_rate", "inner_steps"), [(0.3, 5), (0.4, 2), (0.4, 5), (1.2, 2), (1.2, 5), (1.2, 20)])
def test_a_rate_from_the_loss_far_from_its_best(start_rate, inner_steps):
    assert judge(Settings(rate="from loss", start_rate=start_rate, inner_steps=inner_steps)).verdict == "right"


@pytest.mark.parametrize(("start_rate", "inner_steps"), [(0.5, 20), (0.4, 100)])
def test_a_converged_run_is_refused_not_accused(start_rate, inner_steps):
    """What is left of its outer loss is a few roundings of the weights."""
    with pytest.raises(Undecided, match="it has converged"):
        judge(Settings(start_rate=start_rate, inner_steps=inner_steps))


@pytest.mark.parametrize("f", [torch.exp, torch.sin, lambda x: (1 - x) ** 4, lambda x: x * 2])
@pytest.mark.parametrize("rate", [0.3, 0.123456, 7e-3, 1.7])
def test_a_loss_cast_from_float32_is_never_accused(f, rate):
    try:
        report = referee(lambda meta: f(meta["rate"].float()).double(), {"rate": number(rate)})
    except Undecided as refusal:
        assert "is a float32 number" in str(refusal)
    else:
        assert report.verdict == "right"
    assert referee(lambda meta: f(meta["rate"].float().detach()).double(), {"rate": number(rate)}).verdict == "cut"


@pytest.mark.parametrize("rate", [0.5, 0.25, 1.0, 0.3])
def test_a_path_that_is_lost_in_float32_is_found(rate):
    """Within a float32 step the lost path stands still, and differences as narrow as that agree with autograd."""
    report = referee(lambda meta: meta["rate"] * torch.tensor(meta["rate"].item()), {"rate": number(rate)})
    assert report.verdict == "wrong"


def test_float32_amid_float64_is_never_accused():
    for rate in (0.3, 0.123456, 7e-3):
        report = referee(lambda meta: 1.1 * (meta["rate"].float() * 2).double() + meta["rate"], {"rate": number(rate)})
        assert report.verdict == "right"


def test_a_saturated_loss_has_a_gradient_that_differences_cannot_see():
    report = referee(lambda meta: 1 - torch.tanh(100 * meta["rate"]) + 1, {"rate": number(0.3)})
    assert report.verdict in ("independent", "right")
    sigmoid = referee(lambda meta: 1 + torch.exp(-100 * meta["rate"]), {"rate": number(0.6)})
    assert sigmoid.claimed["rate"] < -1e-25 and sigmoid.verdict == "right"


def test_stationary_by_construction():
    """Separable logistic regression far along: exact slopes down to 1e-9 of the loss."""
    x = torch.linspace(-2, 2, 20, dtype=torch.float64)

    def step(meta):
        w = torch.ones((), dtype=torch.float64, requires_grad=True)
        for _ in range(5):
            loss = torch.nn.functional.softplus(-x * torch.sign(x) * w).mean()
            w = w - meta["rate"] * torch.autograd.grad(loss, w, create_graph=True)[0]
        return torch.nn.functional.softplus(-x.abs() * w).mean()

    for rate in (0.01, 1.0, 100.0):
        assert referee(step, {"rate": number(rate)}).verdict == "right"


def test_a_number_at_the_edge_of_its_domain():
    """Momentum 0, in a step that refuses negative values: differences from one side."""

    def step(meta):
        if meta["momentum"] < 0:
            raise ValueError("negative momentum")
        return (1 - meta["rate"] * (1 + meta["momentum"])) ** 2

    report = referee(step, {"rate": number(0.1), "momentum": number(0.0)})
    assert report.verdict == "right"
    assert report.expected["momentum"].item() == pytest.approx(-0.18, rel=1e-6)


def test_a_logarithm_close_to_zero():
    assert referee(lambda meta: meta["a"].log(), {"a": number(1e-8)}).verdict == "right"
    assert referee(lambda meta: meta["a"].detach().log(), {"a": number(1e-8)}).verdict == "cut"


def test_a_step_may_put_other_things_into_its_dict():
    def step(meta):
        meta["rate"] = meta["rate"] * 2
        return meta["rate"] ** 2

    report = referee(step, RATE)
    assert report.verdict == "right" and report.claimed["rate"].item() == pytest.approx(8 * 0.3)


def test_any_layout_of_a_meta_parameter():
    meta = {"a": torch.rand(3, 4, dtype=torch.float64).t()[::2]}
    assert referee(lambda meta: (meta["a"] ** 3).sum(), meta).verdict == "right"


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_what_surrounds_the_call_does_not_matter(around):
    with around():
        assert referee(cube, RATE).verdict == "right"


def test_a_number_that_cannot_be_judged_does_not_hide_one_that_is_cut():
    def step(meta):
        return (meta["a"] - 0.3).abs() + 1 + meta["b"].detach() ** 2

    report = referee(step, {"a": number(0.3), "b": number(0.5)})
    assert report.verdict == "cut" and report.by_parameter == {"a": "undecided", "b": "cut"}


def test_beyond_the_edge_of_stability():
    """ηh > 2 at 20 steps: values of 1e5 and slopes of 1e7, still right."""
    report = judge(Settings(start_rate=1.2, inner_steps=20))
    assert report.verdict == "right" and abs(report.claimed["log_rate"]) > 1e6
