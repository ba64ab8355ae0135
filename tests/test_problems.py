"""The problems against truths that were not computed by metalib."""

import math
from fractions import Fraction

import pytest
import torch

from metalib.problems import PROBLEMS, Batch, Task, place


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("points", [10, 100, 1000])
def test_best_rate_at_one_step_is_the_ratio_of_chi_square_moments(points):
    from metalib.problems import OneWeight

    assert OneWeight(points=points).best_rate(1) == pytest.approx(points / (2 * points + 8), rel=1e-6)


@pytest.mark.parametrize(
    ("points", "inner_steps", "known"),
    [(100, 1, 0.4808), (100, 2, 0.4747), (100, 5, 0.4575), (100, 10, 0.4315)]
    + [(100, 20, 0.3881), (100, 50, 0.2998), (100, 100, 0.2192), (10, 20, 0.1338), (1000, 50, 0.4677)],
)
def test_best_rate_is_the_zero_of_a_polynomial_of_exact_moments(points, inner_steps, known):
    """E[m² (1 - 2 m rate)^(2K-1)] written out: its coefficients hold E[m^k] = n (n + 2) … (n + 2k - 2) / n^k."""
    from metalib.problems import OneWeight

    moments = [Fraction(1)]
    for k in range(2 * inner_steps + 1):
        moments.append(moments[-1] * (points + 2 * k) / points)
    odd = 2 * inner_steps - 1
    coefficients = [math.comb(odd, k) * (-2) ** k * moments[k + 2] for k in range(odd + 1)]

    def value(rate):
        return sum(coefficient * rate**k for k, coefficient in enumerate(coefficients))

    rate = OneWeight(points=points).best_rate(inner_steps)
    assert rate == pytest.approx(known, abs=6e-5)
    assert value(Fraction(rate) - Fraction(1, 10**8)) > 0 > value(Fraction(rate) + Fraction(1, 10**8))


@pytest.mark.parametrize("inner_steps", [1, 2, 5])
def test_best_rate_minimises_the_sampled_outer_loss(inner_steps):
    """Monte Carlo: 40,000 batches, the outer loss written down by hand, its minimum on a grid."""
    m = (torch.randn(40_000, 100, dtype=torch.float64, generator=generator()) ** 2).mean(dim=1)
    rates = torch.linspace(0.3, 0.6, 301, dtype=torch.float64)
    losses = (m[:, None] * (1 - 2 * m[:, None] * rates) ** (2 * inner_steps)).mean(dim=0)
    assert PROBLEMS["one weight"].best_rate(inner_steps) == pytest.approx(rates[losses.argmin()].item(), abs=0.015)


def test_one_weight_uses_the_same_points_for_all_steps_and_the_outer_loss():
    task = PROBLEMS["one weight"].sample(3, generator())
    assert len(task.inner) == 3
    assert all(batch.x is task.outer.x for batch in task.inner)
    assert torch.equal(task.outer.y, 2 * task.outer.x)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_seed_means_the_same_numbers(name):
    def numbers(seed):
        g = generator(seed)
        weights = PROBLEMS[name].initial_weights(g)
        return [*weights.values(), *PROBLEMS[name].sample(2, g).inner[1]]

    assert all(torch.equal(a, b) for a, b in zip(numbers(3), numbers(3), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(numbers(3), numbers(4), strict=True))


@pytest.mark.parametrize("name", ["classifier", "classifier, random labels"])
def test_the_classifier_walks_through_all_samples_once_in_batches_of_ten(name):
    problem = PROBLEMS[name]
    train, held_out = problem.data
    task = problem.sample(10, generator())
    assert [batch.x.shape for batch in task.inner] == [(10, 10)] * 10
    seen = torch.cat([batch.x for batch in task.inner])
    assert {tuple(row) for row in seen.tolist()} == {tuple(row) for row in train.x.tolist()}
    assert torch.equal(task.outer.x, held_out.x)
    assert not {tuple(row) for row in held_out.x.tolist()} & {tuple(row) for row in train.x.tolist()}
    assert len(problem.sample(25, generator()).inner) == 25


def test_random_labels_are_balanced_so_that_nothing_beats_ln_3():
    for batch in PROBLEMS["classifier, random labels"].data:
        share = batch.y.bincount(minlength=3) / len(batch.y)
        assert -(share * share.log()).sum().item() == pytest.approx(math.log(3), abs=0.01)


def test_structured_labels_can_be_predicted_by_a_linear_model():
    train, held_out = PROBLEMS["classifier"].data
    targets = torch.nn.functional.one_hot(train.y, 3).double()
    solution = torch.linalg.lstsq(torch.cat([train.x, torch.ones(100, 1)], dim=1).double(), targets).solution
    guesses = (torch.cat([held_out.x, torch.ones(100, 1)], dim=1).double() @ solution).argmax(dim=1)
    assert (guesses == held_out.y).double().mean() > 0.8


def test_the_classifiers_loss_is_that_of_the_network_written_out():
    problem = PROBLEMS["classifier"]
    w, batch = problem.initial_weights(generator()), problem.data[0]
    hidden = (batch.x @ w["fc1.weight"].T + w["fc1.bias"]).clamp(min=0)
    scores = hidden @ w["fc2.weight"].T + w["fc2.bias"]
    by_hand = (scores.logsumexp(dim=1) - scores.gather(1, batch.y[:, None]).squeeze(1)).mean()
    assert problem.loss(w, batch).item() == pytest.approx(by_hand.item(), rel=1e-12)


def test_a_forgotten_weight_fails_instead_of_using_another():
    problem = PROBLEMS["classifier"]
    weights = problem.initial_weights(generator())
    del weights["fc2.bias"]
    with pytest.raises(RuntimeError):
        problem.loss(weights, problem.data[0]).item()


def test_place_casts_floats_and_leaves_labels():
    task = Task([Batch(torch.zeros(2, dtype=torch.float64), torch.tensor([0, 1]))], Batch(torch.ones(1), torch.ones(1)))
    moved = place(task, "meta", torch.float32)
    assert moved.inner[0].x.dtype == torch.float32 and moved.inner[0].y.dtype == torch.int64
    assert {t.device.type for batch in (*moved.inner, moved.outer) for t in batch} == {"meta"}
