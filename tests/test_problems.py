"""The problems against truths that were not computed by metalib."""

import math
from fractions import Fraction

import pytest
import torch

from metalib.noisy import expected_loss
from metalib.problems import PROBLEMS, Batch, NoisyQuadratic, Task
from metalib.tasks import place


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


def walk(problem, rate, steps, copies=20_000):
    """The outer losses of many copies, each with its own noise; every step is written down by hand."""
    h = torch.tensor(problem.curvatures, dtype=torch.float64)
    w, source = torch.tensor(problem.starts, dtype=torch.float64).expand(copies, -1), generator()
    for _ in range(steps):
        noise = problem.noise * h.sqrt() * torch.randn(copies, len(h), dtype=torch.float64, generator=source)
        w = w - rate * (h * w + noise)
    return 0.5 * (h * w**2).sum(dim=1)


@pytest.mark.parametrize(("rate", "steps"), [(0.3, 1), (1.9, 5), (0.38, 50)])
def test_the_expected_loss_of_the_noisy_quadratic_is_the_mean_of_many_walks(rate, steps):
    problem = PROBLEMS["noisy quadratic"]
    settings = steps, problem.curvatures, problem.starts, problem.noise
    losses = walk(problem, rate, steps)
    known = expected_loss(torch.tensor([rate], dtype=torch.float64), *settings).item()
    assert losses.mean().item() == pytest.approx(known, abs=4 * losses.std().item() / len(losses) ** 0.5)


def exact_loss(problem, rate, steps):
    """E[w²] step by step in fractions."""
    rate, total = Fraction(rate), Fraction(0)
    for h, start in zip(map(Fraction, problem.curvatures), map(Fraction, problem.starts), strict=True):
        square = start**2
        for _ in range(steps):
            square = (1 - rate * h) ** 2 * square + rate**2 * Fraction(problem.noise) ** 2 * h
        total += h * square / 2
    return total


@pytest.mark.parametrize("problem", [NoisyQuadratic(), NoisyQuadratic(curvatures=(1.0,), starts=(1.0,), noise=0.5)])
@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_best_rate_of_the_noisy_quadratic_is_lower_than_all_others(problem, steps):
    """In exact arithmetic: than its neighbours, and than a grid up to the edge."""
    best = problem.best_rate(steps)
    lowest = exact_loss(problem, best, steps)
    assert lowest < min(exact_loss(problem, best * factor, steps) for factor in (0.9999, 1.0001))
    assert lowest < min(exact_loss(problem, k / 64, steps) for k in range(1, 128))


def test_best_rate_of_the_noisy_quadratic_at_one_step():
    """The zero of d/d rate ½ Σ h ((1 - rate·h)² + rate² 0.01 h), in a line."""
    h = torch.tensor([1.0, 0.02], dtype=torch.float64)
    known = (h**2).sum() / (h**3 + 0.01 * h**2).sum()
    assert PROBLEMS["noisy quadratic"].best_rate(1) == pytest.approx(known.item(), abs=1e-6)


def test_a_short_horizon_errs_to_both_sides():
    """What notebook 08 is about, and that it hangs on the numbers."""
    far, near, flatter = NoisyQuadratic(), NoisyQuadratic(starts=(0.05, 1.0)), NoisyQuadratic(curvatures=(1.0, 0.01))
    assert all(far.best_rate(K) > far.best_rate(200) for K in (1, 2, 5, 10, 20, 50, 100))
    assert near.best_rate(1) < near.best_rate(200) < near.best_rate(50)
    assert flatter.best_rate(20) < flatter.best_rate(200) < flatter.best_rate(1)


def test_the_noisy_quadratics_gradient_noise_is_in_proportion_to_the_curvature():
    problem = PROBLEMS["noisy quadratic"]
    task = problem.sample(4_000, generator())
    gradients = []
    for batch in task.inner:
        w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        gradients.append(torch.autograd.grad(problem.loss({"w": w}, batch), w)[0])
    variances = torch.stack(gradients).var(dim=0)
    assert variances.tolist() == pytest.approx([0.01, 0.0002], rel=0.1)
    assert problem.loss({"w": torch.zeros(2, dtype=torch.float64)}, task.outer) == 0  # the outer loss has no noise
    assert problem.loss({"w": torch.ones(2, dtype=torch.float64)}, task.outer).item() == pytest.approx(0.51)


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
