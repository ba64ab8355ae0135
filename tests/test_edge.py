"""Rate times curvature, against the whole Hessian and against closed forms."""

import pytest
import torch
from torch.autograd.functional import hessian

from metalib.edge import reach
from metalib.problems import PROBLEMS, Batch
from metalib.settings import Settings
from metalib.together import complete_together
from metalib.train import Diverged, complete, train
from metalib.unroll import begin, draw


def test_on_one_weight_it_is_the_rate_times_twice_the_mean_square():
    x = torch.linspace(-1, 2, 50)
    found = reach(PROBLEMS["one weight"], {"w": torch.tensor(1.0)}, {"w": torch.tensor(0.7)}, Batch(x, 2 * x))
    assert found == pytest.approx(0.7 * 2 * (x.double() ** 2).mean().item(), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_on_the_classifier_it_is_the_largest_eigenvalue_of_rates_times_hessian(seed):
    """Each tensor has a rate of its own, so the product is not symmetric."""
    problem = PROBLEMS["classifier"]
    settings = Settings(problem="classifier", seed=seed, dtype="float64")
    generator, weights, _ = begin(settings)
    batch = draw(settings, generator).inner[0]
    rates = {name: torch.tensor(0.1 * (place + 1), dtype=torch.float64) for place, name in enumerate(weights)}
    names, shapes = list(weights), [w.shape for w in weights.values()]
    sizes = [shape.numel() for shape in shapes]

    def loss(flat):
        parts = [part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]
        return problem.loss(dict(zip(names, parts, strict=True)), batch)

    whole = hessian(loss, torch.cat([w.flatten() for w in weights.values()]))
    rate = torch.cat([rates[name].expand(size) for name, size in zip(names, sizes, strict=True)])
    largest = torch.linalg.eigvals(rate[:, None] * whole).real.max().item()
    assert reach(problem, weights, rates, batch, iterations=400) == pytest.approx(largest, rel=1e-4)


def test_a_diverging_run_names_the_number_and_the_edge():
    settings = Settings(inner_steps=60, start_rate=1e3)
    with pytest.raises(Diverged, match=r"At the first inner step rate times curvature was 2.*e\+03: above 2 each step"):
        list(train(settings))
    (one,), (other,) = [complete(settings)], complete_together([settings])
    assert one.error == other.error and len(one.records) == len(other.records) == 1


def test_a_loss_that_is_flat_reaches_nowhere():
    class Flat:
        def loss(self, weights, batch):
            return (weights["w"] * 0).sum()

    assert reach(Flat(), {"w": torch.ones(2)}, {"w": torch.tensor(1.0)}, Batch(torch.ones(1), torch.ones(1))) == 0
