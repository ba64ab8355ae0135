"""The inner optimisers: torch.optim's numbers, and derivatives where torch.optim has none. The referee judges them in
test_metagrad.py."""

import math

import pytest
import torch

from metalib.metagrad import meta_gradient
from metalib.optimisers import OPTIMISERS, SGD, Adam, Clipped
from metalib.problems import PROBLEMS

PROBLEM = PROBLEMS["classifier"]
TORCH = {
    "sgd": lambda weights, lr: torch.optim.SGD(weights, lr),
    "momentum": lambda weights, lr: torch.optim.SGD(weights, lr, momentum=0.9),
    "nesterov": lambda weights, lr: torch.optim.SGD(weights, lr, momentum=0.9, nesterov=True),
    "weight decay": lambda weights, lr: torch.optim.SGD(weights, lr, weight_decay=0.01),
    "adam": lambda weights, lr: torch.optim.Adam(weights, lr),
    "adamw": lambda weights, lr: torch.optim.AdamW(weights, lr, weight_decay=0.01),
    "clipped": lambda weights, lr: torch.optim.SGD(weights, lr),
}


def seeded():
    return torch.Generator().manual_seed(0)


def by_torch(name, rate, task, weights):
    """The weights that torch.optim ends with."""
    weights = {n: w.clone().requires_grad_() for n, w in weights.items()}
    optimiser = TORCH[name](list(weights.values()), rate)
    for batch in task.inner:
        optimiser.zero_grad()
        PROBLEM.loss(weights, batch).backward()
        if name == "clipped":
            torch.nn.utils.clip_grad_norm_(list(weights.values()), 0.1)
        optimiser.step()
    return weights


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_the_weights_are_those_of_torch_optim(name, steps):
    assert TORCH.keys() == OPTIMISERS.keys()
    weights, task, rate = PROBLEM.initial_weights(seeded()), PROBLEM.sample(steps, seeded()), 0.05
    ours = meta_gradient(PROBLEM, rate, steps, optimiser=OPTIMISERS[name], weights=weights, task=task).weights
    for n, w in by_torch(name, rate, task, weights).items():
        assert torch.allclose(ours[n], w, rtol=1e-9, atol=1e-12)  # torch.optim adds eps to another multiple of the root


@pytest.mark.parametrize("rule", [Adam(weight_decay=0.1), Adam(betas=(0.5, 0.7), eps=1e-3), SGD(0.5, weight_decay=0.2)])
def test_other_arguments_too(rule):
    task, weights = PROBLEM.sample(5, seeded()), PROBLEM.initial_weights(seeded())
    ours = meta_gradient(PROBLEM, 0.05, 5, optimiser=rule, weights=weights, task=task).weights
    wanted = {n: w.clone().requires_grad_() for n, w in weights.items()}
    keywords = dict(vars(rule))
    keywords.pop("decoupled", None)
    optimiser = getattr(torch.optim, type(rule).__name__)(list(wanted.values()), 0.05, **keywords)
    for batch in task.inner:
        optimiser.zero_grad()
        PROBLEM.loss(wanted, batch).backward()
        optimiser.step()
    assert all(torch.allclose(ours[n], w, rtol=1e-9, atol=1e-12) for n, w in wanted.items())


@pytest.mark.parametrize("name", [name for name in OPTIMISERS if name != "clipped"])
def test_plain_numbers_take_the_same_steps(name):
    """Clipping is for tensors: its norm is that of all weights."""
    rule, gradients = OPTIMISERS[name], [0.3, -2.0, 0.0, 1e-6]
    numbers, tensors = {"a": 1.5}, {"a": torch.tensor(1.5, dtype=torch.float64)}
    memory, state = rule.start(numbers), rule.start(tensors)
    for step, g in enumerate(gradients):
        by_number, memory = rule.direction(step, {"a": g}, memory, numbers)
        by_tensor, state = rule.direction(step, {"a": torch.tensor(g, dtype=torch.float64)}, state, tensors)
        assert isinstance(by_number["a"], float)
        assert by_number["a"] == pytest.approx(by_tensor["a"].item(), rel=1e-12)


def test_the_outer_loops_adam_is_that_of_torch():
    rule, numbers = Adam(), {"a": 1.5, "b": -0.5}
    memory = rule.start(numbers)
    tensors = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in numbers.values()]
    optimiser = torch.optim.Adam(tensors, lr=0.05)
    for step in range(50):
        gradients = {"a": math.sin(step), "b": math.exp(-step)}
        directions, memory = rule.direction(step, gradients, memory, numbers)
        numbers = {name: value - 0.05 * directions[name] for name, value in numbers.items()}
        for tensor, g in zip(tensors, gradients.values(), strict=True):
            tensor.grad = torch.tensor(g, dtype=torch.float64)
        optimiser.step()
    assert list(numbers.values()) == pytest.approx([t.item() for t in tensors], rel=1e-9)


@pytest.mark.parametrize("rule", [Adam(), Clipped(0.1, Adam())])
@pytest.mark.parametrize("mode", ["reverse", "forward", "checkpointed"])
def test_a_weight_whose_gradient_is_zero_does_not_turn_everything_into_nan(rule, mode):
    """A ReLU unit that is off for all samples; the root's own derivative at 0 is infinite."""
    weights, task = PROBLEM.initial_weights(seeded()), PROBLEM.sample(3, seeded())
    weights["fc1.bias"][0] = -100.0
    found = meta_gradient(PROBLEM, 0.05, 3, mode, optimiser=rule, weights=weights, task=task)
    assert found.weights["fc1.bias"][0] == -100.0
    assert found.gradient["rate"].isfinite() and found.gradient["rate"] != 0


def test_clipping_below_the_norm_changes_nothing_and_above_it_the_meta_gradient():
    plain, loose, tight = (
        meta_gradient(PROBLEM, 0.3, 3, optimiser=rule).gradient["rate"].item()
        for rule in (SGD(), Clipped(1e6), Clipped(0.01))
    )
    assert loose == pytest.approx(plain, rel=1e-12)
    assert abs(tight - plain) > 0.01 * abs(plain)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SGD(momentum=-0.1), "SGD: momentum is -0.1: give a finite number, 0 or more"),
        (lambda: SGD(weight_decay=float("nan")), "SGD: weight_decay is nan"),
        (lambda: SGD(nesterov=True), "SGD: nesterov looks ahead along the momentum, which is 0"),
        (lambda: Adam(betas=(0.9, 1.0)), r"Adam: betas are \(0.9, 1.0\): give two numbers from 0 to below 1"),
        (lambda: Adam(eps=-1.0), "Adam: eps is -1.0"),
        (lambda: Clipped(float("inf")), "Clipped: norm is inf"),
        (lambda: Clipped(1.0, "adam"), "optimiser is 'adam': give a rule"),
        (lambda: SGD(momentum="0.9"), "SGD: momentum is '0.9': give a finite number"),
        (lambda: Adam(betas=0.9), "Adam: betas are 0.9: give two numbers"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
