"""The functional unroll against closed forms, and against another implementation of the same derivative."""

import weakref

import pytest
import torch
from torch.func import functional_call, grad, jvp

from metalib.problems import PROBLEMS, Net
from metalib.settings import Settings, devices
from metalib.unroll import begin, curve, draw, fresh_leaves, meta_step, one_thread, unroll

ONE_WEIGHT = PROBLEMS["one weight"]


def one_weight(**choices):
    """(meta-gradient for the rate itself, the settings, the task)."""
    settings = Settings(dtype="float64", **choices)
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    outer_loss = unroll(settings, meta, weights, task).outer_loss
    (by_log,) = torch.autograd.grad(outer_loss, [meta["log_rate"]])
    return by_log.item() / settings.start_rate, settings, task


@pytest.mark.parametrize("inner_steps", [1, 2, 5, 20])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.45, 0.9, 1.2, 1.5])
def test_closed_form_into_the_explosion(rate, inner_steps):
    gradient, settings, task = one_weight(start_rate=rate, inner_steps=inner_steps)
    h = 2 * (task.outer.x**2).mean().item()
    by_hand = -inner_steps * h**2 * (1 - rate * h) ** (2 * inner_steps - 1) * (1.0 - 2.0) ** 2
    assert gradient == pytest.approx(by_hand, rel=1e-9)
    assert ONE_WEIGHT.meta_gradient(rate, task.outer, inner_steps) == pytest.approx(by_hand, rel=1e-12)
    if rate > 1.1:
        assert rate * h > 2 and (inner_steps == 1 or abs(gradient) > 100)


@pytest.mark.parametrize("truncation", [1, 2, 5])
def test_truncation_is_the_derivative_of_the_last_steps_alone(truncation):
    """From w_{K-T} on, it is the closed form of T steps."""
    gradient, settings, task = one_weight(inner_steps=5, truncation=truncation)
    h = 2 * (task.outer.x**2).mean().item()
    distance = (1 - 0.1 * h) ** (5 - truncation) * (1.0 - 2.0)
    by_hand = -truncation * h**2 * (1 - 0.1 * h) ** (2 * truncation - 1) * distance**2
    assert gradient == pytest.approx(by_hand, rel=1e-9)


def test_truncation_keeps_no_graph_of_the_steps_that_are_cut_off():
    """Bytes that autograd has saved at the worst moment, for one live step among 5 or among 50."""

    def peak(inner_steps):
        settings = Settings(problem="classifier", inner_steps=inner_steps, truncation=1)
        generator, weights, meta = begin(settings)
        task, held, most = draw(settings, generator), weakref.WeakSet(), 0

        def pack(tensor):
            nonlocal most
            held.add(box := Box(tensor.detach()))  # with its history it would keep itself alive
            most = max(most, sum(each.tensor.nbytes for each in held))
            return box

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
            unroll(settings, meta, weights, task)
        return most

    assert peak(50) < 1.2 * peak(5)


class Box:
    """A saved tensor in a wrapper that lives exactly as long as the graph that saved it."""

    def __init__(self, tensor):
        self.tensor = tensor


@pytest.mark.parametrize("truncation", [None, 1, 3])
def test_truncation_does_not_change_values(truncation):
    settings = Settings(problem="classifier", inner_steps=5, truncation=truncation, dtype="float64")
    generator, weights, meta = begin(settings)
    run = unroll(settings, meta, weights, draw(settings, generator))
    assert len(run.inner_losses) == len(run.rates) == 5
    full = Settings(problem="classifier", inner_steps=5, dtype="float64")
    generator, weights, meta = begin(full)
    assert run.outer_loss.item() == unroll(full, meta, weights, draw(full, generator)).outer_loss.item()


@pytest.mark.parametrize("inner_steps", [1, 2, 5])
def test_the_classifier_against_forward_mode(inner_steps):
    """torch.func.jvp through torch.func.grad: no shared code, no reverse mode over the steps."""
    settings = Settings(problem="classifier", inner_steps=inner_steps, dtype="float64")
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    (claimed,) = torch.autograd.grad(unroll(settings, meta, weights, task).outer_loss, [meta["log_rate"]])
    net = Net().double()

    def loss(w, batch):
        return torch.nn.functional.cross_entropy(functional_call(net, w, (batch.x,)), batch.y)

    def outer(log_rate):
        w = weights
        for batch in task.inner:
            g = grad(loss)(w, batch)
            w = {name: w[name] - log_rate.exp() * g[name] for name in w}
        return loss(w, task.outer)

    at = meta["log_rate"].detach()
    _, expected = jvp(outer, (at,), (torch.ones_like(at),))
    assert claimed.item() == pytest.approx(expected.item(), rel=1e-10)


def test_unroll_leaves_weights_and_meta_parameters_as_they_are():
    settings = Settings(problem="classifier", version="data_write", inner_steps=2)
    generator, weights, meta = begin(settings)
    before = {name: w.clone() for name, w in weights.items()}
    unroll(settings, meta, weights, draw(settings, generator)).outer_loss.backward()
    assert all(torch.equal(weights[name], before[name]) for name in weights)
    assert all(w.grad is None for w in weights.values())


def test_what_each_step_saw_is_kept_without_a_graph():
    settings = Settings(problem="classifier", rate="from loss", inner_steps=3)
    generator, weights, meta = begin(settings)
    run = unroll(settings, meta, weights, draw(settings, generator))
    seen = [*run.inner_losses, *(rate for rates in run.rates for rate in rates.values())]
    assert len(seen) == 3 + 3 * 4 and not any(tensor.requires_grad for tensor in seen)


def test_the_curve_names_each_tensors_own_rate():
    settings = Settings(problem="classifier", rate="per tensor", inner_steps=2)
    generator, weights, _ = begin(settings)
    rates = {name: 0.1 * number for number, name in enumerate(weights, start=1)}
    meta = {f"log_rate.{name}": torch.tensor(rate).log() for name, rate in rates.items()}
    assert curve(settings, unroll(settings, meta, weights, draw(settings, generator))) == pytest.approx(rates)


def test_fresh_leaves_share_neither_history_nor_storage():
    w = torch.ones(2, requires_grad=True)
    (leaf,) = fresh_leaves({"w": w * 2}).values()
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad_fn is None
    kept = torch.zeros(2)
    (leaf,) = fresh_leaves({"w": kept}).values()
    with torch.no_grad():
        leaf += 1
    assert kept.sum() == 0


def test_the_step_for_the_referee_can_be_repeated():
    step, meta = meta_step(Settings(problem="classifier", inner_steps=3))
    assert step(meta).item() == step(meta).item()
    assert step(meta).dtype == torch.float64


class Devices(torch.overrides.TorchFunctionMode):
    """Every device on which a torch call left a tensor."""

    def __init__(self):
        super().__init__()
        self.seen, self.calls = set(), 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.calls += 1
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.seen.add(tensor.device.type)
        return result


@pytest.mark.parametrize("device", ["meta"] + [name for name, reason in devices().items() if not reason])
@pytest.mark.parametrize("rate", ["constant", "per tensor", "from loss"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_functional_step_creates_no_tensor_on_another_device(problem, rate, device):
    """The meta device holds no numbers, so a single tensor made elsewhere and mixed in would raise or be seen."""
    settings = Settings(problem=problem, rate=rate, inner_steps=3)
    object.__setattr__(settings, "device", device)  # "meta" is no choice for a reader
    object.__setattr__(settings, "check_device", lambda: None)
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    with Devices() as devices_seen:
        run = unroll(settings, meta, weights, task)
        torch.autograd.grad(run.outer_loss, list(meta.values()))
    assert devices_seen.calls > 20
    assert devices_seen.seen == {device}


def test_one_thread_gives_the_others_back_even_after_an_error():
    threads = torch.get_num_threads()
    with pytest.raises(KeyError), one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == threads
