"""The rate models: they start where they are told, stay positive and differentiable."""

import math

import pytest
import torch

from metalib.rates import RATES

WEIGHTS = {"a": torch.zeros(3, dtype=torch.float64), "b": torch.zeros(2, dtype=torch.float64)}


def loss(value):
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.1, 0.5, 2.0, 500.0])
def test_the_first_rate_is_the_one_asked_for(name, rate):
    meta = RATES[name].start(rate, WEIGHTS)
    for value in (0.0, 3.0):
        rates = RATES[name](meta, loss(value), WEIGHTS)
        assert list(rates) == ["a", "b"]
        assert [r.item() for r in rates.values()] == pytest.approx([rate, rate], rel=1e-9)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_rates_stay_positive_wherever_the_optimiser_goes(name, shift):
    meta = {key: p.detach() + shift for key, p in RATES[name].start(0.1, WEIGHTS).items()}
    assert all(r.item() > 0 for r in RATES[name](meta, loss(0.0), WEIGHTS).values())


@pytest.mark.parametrize("name", RATES)
def test_meta_parameters_are_leaves_of_the_weights_kind_and_all_get_a_gradient(name):
    meta = RATES[name].start(0.1, WEIGHTS)
    assert all(p.is_leaf and p.requires_grad and p.dtype == torch.float64 and p.shape == () for p in meta.values())
    sum(RATES[name](meta, loss(2.0), WEIGHTS).values()).backward()
    assert all(p.grad is not None and p.grad != 0 for p in meta.values())


def test_the_rate_from_the_loss_is_the_questions_meta_model():
    meta = {"slope": loss(0.7), "offset": loss(-1.5)}
    rates = RATES["from loss"](meta, loss(2.0), WEIGHTS)
    assert rates["a"].item() == pytest.approx(math.log1p(math.exp(0.7 * 2.0 - 1.5)), rel=1e-12)


def test_the_per_tensor_model_gives_each_weight_its_own():
    meta = {"log_rate.a": loss(math.log(0.2)), "log_rate.b": loss(math.log(3.0))}
    rates = RATES["per tensor"](meta, loss(1.0), WEIGHTS)
    assert (rates["a"].item(), rates["b"].item()) == pytest.approx((0.2, 3.0))


def test_curves():
    history = [{"a": 0.1, "b": 0.1}, {"a": 0.2, "b": 0.2}, {"a": 0.3, "b": 0.3}]
    assert RATES["constant"].curve(history) == {"rate": 0.1}
    assert RATES["per tensor"].curve([{"a": 0.1, "b": 0.4}]) == {"a": 0.1, "b": 0.4}
    assert RATES["from loss"].curve(history) == {"first step": 0.1, "last step": 0.3}
    assert RATES["from loss"].curve(history[:1]) == {"rate": 0.1}
