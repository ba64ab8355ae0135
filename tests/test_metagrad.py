"""The engine: every mode gives the meta-gradient that closed forms, differences and the plain loop give."""

import gc
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from metalib.choice import choose, graph_bytes
from metalib.metagrad import MODES, meta_gradient
from metalib.modes import Loop
from metalib.optimisers import OPTIMISERS, SGD
from metalib.own import FromModule
from metalib.problems import PROBLEMS, Batch, Task
from metalib.rates import RATES, Given, Learned
from metalib.referee import referee
from metalib.settings import Settings
from metalib.unroll import begin, draw, unroll

EXACT = [("reverse", None), ("forward", None), ("checkpointed", None), ("checkpointed", 1), ("checkpointed", 3)]
STEPS = [1, 2, 5]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def rates_for(problem):
    """One of each kind of rate: a number, one for each tensor, one from the loss."""
    weights = PROBLEMS[problem].initial_weights(seeded())
    return {
        "constant": 0.3,
        "per tensor": {name: 0.2 + 0.1 * i for i, name in enumerate(weights)},
        "log per tensor": Learned(RATES["per tensor"], RATES["per tensor"].start(0.3, weights)),
        "from loss": Learned(RATES["from loss"], {"slope": 0.2, "offset": -1.0}),
    }


def furthest(left, right):
    """The largest relative difference between two {name: tensor}."""
    assert left.keys() == right.keys()
    return max(((left[name] - right[name]).abs().max() / right[name].abs().max()).item() for name in left)


@pytest.mark.parametrize("steps", [*STEPS, 17])
@pytest.mark.parametrize("rate", ["constant", "per tensor", "log per tensor", "from loss"])
@pytest.mark.parametrize("problem", ["one weight", "classifier"])
def test_all_exact_modes_give_the_same_numbers(problem, rate, steps):
    expected = meta_gradient(PROBLEMS[problem], rates_for(problem)[rate], steps, "reverse")
    for mode, span in [*EXACT, ("auto", None)]:
        found = meta_gradient(PROBLEMS[problem], rates_for(problem)[rate], steps, mode, span=span)
        assert furthest(found.gradient, expected.gradient) < 1e-10
        assert furthest(found.weights, expected.weights) < 1e-12
        assert found.outer_loss.item() == pytest.approx(expected.outer_loss.item(), rel=1e-12)
        assert torch.tensor(found.inner_losses).allclose(torch.tensor(expected.inner_losses), rtol=1e-12, atol=0)
        assert len(found.rates) == steps
        assert all(furthest(a, b) < 1e-12 for a, b in zip(found.rates, expected.rates, strict=True))


@pytest.mark.parametrize("steps", [1, 2, 5, 20, 100])
@pytest.mark.parametrize(("mode", "span"), EXACT)
def test_the_closed_form_of_one_weight(mode, span, steps):
    problem = PROBLEMS["one weight"]
    task = problem.sample(steps, seeded(1))
    for rate in (0.02, 0.3):
        found = meta_gradient(problem, rate, steps, mode, span=span, task=task)
        assert found.gradient["rate"].item() == pytest.approx(problem.meta_gradient(rate, task.outer, steps), rel=1e-10)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("rate", list(RATES))
@pytest.mark.parametrize("problem", list(PROBLEMS))
def test_the_plain_loop_of_the_notebooks_gives_the_same(problem, rate, steps):
    settings = Settings(problem=problem, rate=rate, inner_steps=steps, start_rate=0.3, dtype="float64")
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    run = unroll(settings, meta, weights, task)
    grads = torch.autograd.grad(run.outer_loss, list(meta.values()))
    for mode, span in EXACT:
        learned = Learned(RATES[rate], meta)
        found = meta_gradient(PROBLEMS[problem], learned, steps, mode, span=span, weights=weights, task=task)
        assert furthest(found.gradient, dict(zip(meta, grads, strict=True))) < 1e-10


class Claim(torch.autograd.Function):
    """An outer loss whose gradient is what a mode says it is, so that the referee can judge the mode."""

    @staticmethod
    def forward(ctx, solve, names, *values):
        found = solve(dict(zip(names, values, strict=True)))
        ctx.save_for_backward(*(found.gradient[name] for name in names))
        return found.outer_loss

    @staticmethod
    def backward(ctx, by_loss):
        return None, None, *(by_loss * g for g in ctx.saved_tensors)


def judged(solve, meta):
    return referee(lambda meta: Claim.apply(solve, list(meta), *meta.values()), meta)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_the_referee_finds_every_optimiser_right(name, steps):
    """In reverse mode; below, all other modes are held to that one."""
    problem = PROBLEMS["classifier"]
    weights, task = problem.initial_weights(seeded()), problem.sample(steps, seeded(1))
    start = {"rate": torch.tensor(0.01 if "adam" in name else 0.3)}

    def solve(meta):
        rate = Learned(Given(), meta)
        return meta_gradient(problem, rate, steps, "reverse", optimiser=OPTIMISERS[name], weights=weights, task=task)

    report = judged(solve, start)
    assert report.verdict == "right", report


def test_the_referee_would_not_have_found_a_wrong_mode_right():
    problem = PROBLEMS["classifier"]
    task = problem.sample(5, seeded(1))
    solve = partial(meta_gradient, problem, inner_steps=5, task=task)
    for mode, span in (("first_order", None), ("truncated", 2)):
        report = judged(
            lambda meta, mode=mode, span=span: solve(Learned(Given(), meta), mode=mode, span=span),
            {"rate": torch.tensor(0.3)},
        )
        assert report.verdict == "wrong"


@pytest.mark.parametrize("rate", ["constant", "per tensor", "from loss"])
@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_optimisers_with_every_rate_in_every_mode(name, rate):
    rates = rates_for("classifier")
    expected = meta_gradient(PROBLEMS["classifier"], rates[rate], 6, "reverse", optimiser=OPTIMISERS[name])
    for mode, span in EXACT[1:]:
        found = meta_gradient(PROBLEMS["classifier"], rates[rate], 6, mode, span=span, optimiser=OPTIMISERS[name])
        assert furthest(found.gradient, expected.gradient) < 1e-10


@pytest.mark.parametrize("mode", ["auto", *(mode for mode, _ in EXACT), "truncated", "first_order", "batched"])
@pytest.mark.parametrize("steps", STEPS)
def test_a_loss_function_with_weights_and_batches_is_a_problem(mode, steps):
    problem = PROBLEMS["classifier"]
    weights, task = problem.initial_weights(seeded()), problem.sample(steps, seeded(1))
    rate = 0.3
    if mode == "batched":
        rate, weights = [0.3, 0.1], {name: torch.stack([w, w]) for name, w in weights.items()}

    def loss(weights, batch):
        return problem.loss(weights, batch)

    expected = meta_gradient(problem, rate, steps, mode, weights=weights, task=task)
    found = meta_gradient(loss, rate, steps, mode, weights=weights, task=task)
    assert found.gradient["rate"].equal(expected.gradient["rate"]) and found.gradient["rate"].all()


def test_a_rate_for_every_number_in_the_weights():
    weights = PROBLEMS["classifier"].initial_weights(seeded())
    rate = {name: 0.2 + 0.1 * torch.rand(w.shape, dtype=w.dtype, generator=seeded(2)) for name, w in weights.items()}
    expected = meta_gradient(PROBLEMS["classifier"], rate, 3, "reverse")
    assert expected.gradient["fc1.weight"].shape == (10, 10)
    for mode, span in EXACT[1:]:
        assert (
            furthest(meta_gradient(PROBLEMS["classifier"], rate, 3, mode, span=span).gradient, expected.gradient)
            < 1e-10
        )


@pytest.mark.parametrize("span", [1, 2, 5])
def test_truncated_is_the_plain_loop_truncated(span):
    settings = Settings(problem="classifier", inner_steps=5, truncation=span, start_rate=0.3, dtype="float64")
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    (expected,) = torch.autograd.grad(unroll(settings, meta, weights, task).outer_loss, list(meta.values()))
    rate = Learned(RATES["constant"], meta)
    found = meta_gradient(PROBLEMS["classifier"], rate, 5, "truncated", span=span, weights=weights, task=task)
    assert furthest(found.gradient, {"log_rate": expected}) < 1e-12
    exact = meta_gradient(PROBLEMS["classifier"], rate, 5, weights=weights, task=task)
    assert (furthest(found.gradient, exact.gradient) < 1e-10) == (span == 5)


@pytest.mark.parametrize("steps", STEPS)
def test_first_order_is_the_version_of_that_name(steps):
    settings = Settings(problem="classifier", version="first_order", inner_steps=steps, start_rate=0.3, dtype="float64")
    generator, weights, meta = begin(settings)
    task = draw(settings, generator)
    (expected,) = torch.autograd.grad(unroll(settings, meta, weights, task).outer_loss, list(meta.values()))
    rate = Learned(RATES["constant"], meta)
    found = meta_gradient(PROBLEMS["classifier"], rate, steps, "first_order", weights=weights, task=task)
    assert furthest(found.gradient, {"log_rate": expected}) < 1e-12
    exact = meta_gradient(PROBLEMS["classifier"], rate, steps, weights=weights, task=task)
    assert (furthest(found.gradient, exact.gradient) < 1e-10) == (steps == 1)


def test_the_biases_that_the_docstrings_name():
    tasks = range(100)

    def mean(steps, mode):
        one = [meta_gradient(PROBLEMS["classifier"], 0.1, steps, mode, generator=seeded(seed)) for seed in tasks]
        return sum(found.gradient["rate"] for found in one).item()

    def exact(steps):
        generators = [seeded(seed) for seed in tasks]
        found = meta_gradient(PROBLEMS["classifier"], [0.1] * len(tasks), steps, "batched", generator=generators)
        return found.gradient["rate"].sum().item()

    for steps, mode, bias in ((5, "first_order", 0.12), (10, "first_order", 0.22), (10, "truncated", -0.55)):
        found = mean(steps, mode) / exact(steps) - 1
        print(f"{mode}, K = {steps}: {found:+.3f}")
        assert found == pytest.approx(bias, abs=0.005)
        number = f"{abs(bias):.0%} {'too large' if bias > 0 else 'too small'} at K = {steps}"
        assert (
            number in " ".join(MODES[mode].__doc__.split())
            or f"and {abs(bias):.0%} at K = {steps}" in MODES[mode].__doc__
        )


# Many runs at once.


@pytest.mark.parametrize("name", list(OPTIMISERS))
@pytest.mark.parametrize("problem", ["one weight", "classifier"])
def test_batched_runs_are_the_runs_one_by_one(problem, name):
    rates, counts, seeds = [0.05, 0.3, 0.2, 0.3], [1, 5, 2, 7], [0, 1, 2, 0]
    together = meta_gradient(
        PROBLEMS[problem], rates, counts, "batched", optimiser=OPTIMISERS[name], generator=[seeded(s) for s in seeds]
    )
    for i, (rate, steps, seed) in enumerate(zip(rates, counts, seeds, strict=True)):
        alone = meta_gradient(PROBLEMS[problem], rate, steps, optimiser=OPTIMISERS[name], generator=seeded(seed))
        assert together.gradient["rate"][i].item() == pytest.approx(alone.gradient["rate"].item(), rel=1e-10)
        assert together.outer_loss[i].item() == pytest.approx(alone.outer_loss.item(), rel=1e-10)
        assert furthest({n: w[i] for n, w in together.weights.items()}, alone.weights) < 1e-10


def test_batched_runs_share_what_is_given_once():
    together = meta_gradient(PROBLEMS["classifier"], [0.1, 0.3], [3, 5], "batched", generator=seeded(4))
    for i, (rate, steps) in enumerate([(0.1, 3), (0.3, 5)]):
        alone = meta_gradient(PROBLEMS["classifier"], rate, steps, generator=seeded(4))
        assert together.gradient["rate"][i].item() == pytest.approx(alone.gradient["rate"].item(), rel=1e-10)


def test_a_run_that_explodes_leaves_the_others_alone():
    together = meta_gradient(PROBLEMS["one weight"], [1e150, 0.3], [5, 5], "batched")
    alone = meta_gradient(PROBLEMS["one weight"], 0.3, 5)
    assert not together.outer_loss[0].isfinite()
    assert together.gradient["rate"][1].item() == pytest.approx(alone.gradient["rate"].item(), rel=1e-12)


# What is chosen, what is kept, what is left behind.


def network(*sizes):
    torch.manual_seed(0)
    layers = [layer for a, b in zip(sizes, sizes[1:], strict=False) for layer in (nn.Linear(a, b), nn.Tanh())]
    batch = Batch(torch.rand(8, sizes[0]), torch.randint(sizes[-1], (8,)))
    return FromModule(nn.Sequential(*layers[:-1]), F.cross_entropy, [batch], batch)


@pytest.mark.parametrize(
    ("problem", "rate", "steps", "mode", "reason"),
    [
        (PROBLEMS["classifier"], 0.1, 5, "reverse", "reverse mode is the fastest here"),
        (PROBLEMS["classifier"], 0.1, 100, "reverse", "reverse mode is the fastest here"),
        (network(200, 150, 10), 0.1, 10, "forward", "1 number to differentiate for, 31,660 in the weights, K = 10"),
        (network(200, 150, 10), 0.1, 1, "reverse", "reverse mode is the fastest here"),
        (network(900, 900, 10), Learned(RATES["from loss"], {"slope": 0.0, "offset": -2.0}), 100, "forward", "MiB"),
    ],
)
def test_auto_says_what_it_picks_and_why(problem, rate, steps, mode, reason):
    found = meta_gradient(problem, rate, steps)
    assert found.mode == mode
    assert reason in found.why


def test_auto_takes_segments_for_many_meta_parameters_whose_graphs_are_large():
    problem = network(900, 900, 10)
    weights = problem.initial_weights()
    inner = [partial(problem.loss, batch=problem.outer)] * 100
    meta = {name: torch.tensor(0.1, requires_grad=True) for name in weights}
    mode, why = choose(Loop(weights, inner, inner[0], Given(), SGD()), meta)
    assert mode == "checkpointed"
    assert "4 numbers to differentiate for" in why


def test_the_bytes_of_a_graph_are_those_that_its_steps_keep():
    """Counted against a whole unroll: every tensor that its graph saves, each storage once, but for the data."""
    problem = network(300, 200, 10)

    def kept(steps):
        storages = {}

        def note(saved):
            storages[saved.untyped_storage().data_ptr()] = saved.untyped_storage()
            return saved

        with torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
            meta_gradient(problem, 0.1, steps, "reverse")
        return sum(storage.nbytes() for storage in storages.values())

    kept(2)  # the first call tries the module out
    weights = problem.initial_weights()
    inner = [partial(problem.loss, batch=problem.outer)] * 2
    guess = graph_bytes(Loop(weights, inner, inner[0], Given(), SGD()), {"rate": torch.tensor(0.1, requires_grad=True)})
    a_step = (kept(12) - kept(4)) / 8
    assert a_step > 300 * 200 * 4  # at least a gradient
    assert guess == pytest.approx(a_step, rel=0.25)


def test_nothing_that_was_given_is_changed():
    problem = network(20, 20, 3)
    weights, task = problem.initial_weights(), problem.sample(4)
    before = {name: w.clone() for name, w in weights.items()}
    rate = torch.tensor(0.3, requires_grad=True)
    for mode in MODES:
        given = rate if mode != "batched" else rate.expand(2)
        stacked = weights if mode != "batched" else {name: torch.stack([w, w]) for name, w in weights.items()}
        found = meta_gradient(problem, given, 4, mode, weights=stacked, task=task)
        assert all(torch.equal(w, before[name]) and not w.requires_grad for name, w in weights.items())
        results = [*found.gradient.values(), found.outer_loss, *found.weights.values(), *found.inner_losses]
        assert not any(t.requires_grad for t in results + [r for each in found.rates for r in each.values()])
    assert rate.grad is None


def test_it_works_where_gradients_are_off():
    expected = meta_gradient(PROBLEMS["classifier"], 0.3, 3).gradient
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            assert furthest(meta_gradient(PROBLEMS["classifier"], 0.3, 3).gradient, expected) == 0


@pytest.mark.parametrize("mode", list(MODES))
def test_no_tensor_is_left_alive(mode):
    problem = network(20, 20, 3)
    rate = [0.1, 0.2] if mode == "batched" else 0.1
    meta_gradient(problem, rate, 5, mode)

    def alive():
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    before = alive()
    for _ in range(5):
        meta_gradient(problem, rate, 5, mode)
    assert alive() <= before


def fresh_process(code):
    return subprocess.check_output([sys.executable, "-c", code], text=True, timeout=300).strip()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its own peak")
def test_forward_mode_needs_8_mib_above_the_model_at_any_number_of_steps():
    """784-256-10, batch 64: peak memory of a whole process, over what it was after a first call at K = 2."""
    found = fresh_process("""
import re, torch
from torch import nn
from torch.nn import functional as F
from metalib.metagrad import meta_gradient
from metalib.own import FromModule
from metalib.problems import Batch
net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
batch = Batch(torch.rand(64, 784), torch.randint(10, (64,)))
problem = FromModule(net, F.cross_entropy, [batch], batch)
meta_gradient(problem, 0.1, 2, "forward")
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**10
before = peak()
found = meta_gradient(problem, 0.1, 1_000)
print(found.mode, peak() - before)
before = peak()
meta_gradient(problem, 0.1, 60, "reverse")
print(peak() - before)
""")
    print(found)
    mode, forward, reverse = found.split()
    assert mode == "forward"
    assert float(forward) < 8
    assert float(reverse) > 30  # the measure sees what grows


def test_the_first_meta_step_does_not_wait_for_the_compiler():
    """torch.optim and torch.func's transforms import all of torch._dynamo at their first use: more than a second."""
    found = fresh_process("""
import sys
from metalib.metagrad import meta_gradient
from metalib.problems import PROBLEMS
from metalib.settings import Settings
from metalib.train import train
next(train(Settings(problem="classifier", inner_steps=3)))
for mode in ("auto", "reverse", "forward", "checkpointed"):
    meta_gradient(PROBLEMS["classifier"], 0.1, 3, mode)
print("torch._dynamo" in sys.modules, "torch.optim.adam" in sys.modules)
""")
    assert found.startswith("False"), found


# What is refused, and in which words.


class Square:
    """A problem of one's own: three functions."""

    def initial_weights(self, generator):
        return {"w": torch.ones(40, 40)}

    def sample(self, inner_steps, generator):
        return Task([Batch(torch.ones(()), torch.ones(()))] * inner_steps, Batch(torch.ones(()), torch.ones(())))

    def loss(self, weights, batch):
        return (weights["w"] ** 4).mean() * batch.x


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"inner_steps": 0}, "inner_steps is 0: give a whole number from 1 to 1,000,000"),
        ({"inner_steps": -1}, "inner_steps is -1: give a whole number"),
        ({"inner_steps": 2.5}, "inner_steps is 2.5: give a whole number"),
        ({"inner_steps": "5"}, "inner_steps is '5': give a whole number"),
        ({"inner_steps": 10**9}, "inner_steps is 1000000000: give a whole number"),
        ({"mode": "backward"}, "unknown mode 'backward': choose one of 'auto', 'reverse'"),
        ({"span": 0, "mode": "truncated"}, "span is 0: give a whole number"),
        ({"rate": float("nan")}, "rate is nan: give a finite number"),
        ({"rate": float("inf")}, "rate is inf: give a finite number"),
        ({"rate": "fast"}, "rate is 'fast': give a number, or a tensor"),
        ({"rate": {"w": 0.1}}, "rates are given for 'w': give one for each of 'fc1.weight', 'fc1.bias'"),
        ({"rate": [0.1, 0.2]}, r"rate has the shape \(2,\): give one number, or choose mode 'batched'"),
        ({"inner_steps": 2, "task": PROBLEMS["classifier"].sample(5, seeded())}, "the task has 5 inner batches for 2"),
        (
            {"mode": "batched", "rate": [0.1], "task": PROBLEMS["classifier"].sample(5, seeded())},
            "5 inner batches for 1",
        ),
        ({"rate": {"rate": 0.1, "fc1.wieght": 0.2}}, "rates are given for 'rate', 'fc1.wieght': give one for each of"),
        ({"rate": {}}, "rates are given for nothing"),
        ({"optimiser": "adam"}, r"optimiser is 'adam': give a rule such as SGD\(momentum=0.9\), Adam\(\)"),
        ({"optimiser": torch.optim.SGD}, "give a rule such as"),
        (
            {"mode": "forward", "rate": {n: torch.full((40, 40), 0.1) for n in ("w",)}, "problem": Square()},
            "derivative for each of 1,600 numbers, at most 1,000: choose 'reverse' or 'checkpointed'",
        ),
        ({"problem": "classifier"}, r"problem is 'classifier': give PROBLEMS\[…\]"),
        ({"problem": nn.Linear(2, 2)}, r"give FromModule\(your module"),
        ({"problem": nn.Linear}, "or a loss function"),
        ({"problem": F.mse_loss}, r"does not say where to start or on what: give weights=\{name: tensor\}"),
        ({"problem": F.mse_loss, "weights": {"w": torch.ones(1)}}, r"give task=Task\(inner batches, outer batch\)"),
        ({"generator": 5}, "generator is 5: give one of your own"),
        ({"generator": torch.default_generator}, "give one of your own"),
        ({"mode": "batched"}, r"and rate has the shape \(\): give R numbers"),
        ({"mode": "batched", "rate": []}, "give R numbers for each rate"),
        ({"mode": "batched", "rate": [0.1, 0.2], "inner_steps": [1, 2, 3]}, "inner_steps: 3 are given for 2 runs"),
        ({"mode": "batched", "rate": [0.1, 0.2], "inner_steps": [1, 0]}, "inner_steps is 0"),
    ],
)
def test_a_wrong_choice_gets_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        meta_gradient(**({"problem": PROBLEMS["classifier"], "rate": 0.1, "inner_steps": 1} | wrong))


def test_a_loss_that_is_not_one_number_gets_a_sentence():
    batch = Batch(torch.rand(8, 4), torch.randint(3, (8,)))
    problem = FromModule(nn.Linear(4, 3), partial(F.cross_entropy, reduction="none"), [batch], batch)
    with pytest.raises(ValueError, match=r"the loss has shape \(8,\): return one number"):
        meta_gradient(problem, 0.1, 1)


def test_a_loss_that_has_lost_the_weights_gets_a_sentence():
    batch = Batch(torch.rand(8, 4), torch.randint(3, (8,)))
    problem = FromModule(nn.Linear(4, 3), lambda prediction, y: F.cross_entropy(prediction.detach(), y), [batch], batch)
    with pytest.raises(ValueError, match="the loss has no graph that leads to the weights"):
        meta_gradient(problem, 0.1, 1)


class Looking:
    """A rate model that uses the loss's value, not its history, and branches on it."""

    name = "looking"

    def __call__(self, meta, loss, weights):
        scale = 1 + loss.detach() if loss < 1.09 else 0.5 * loss
        return {name: meta["scale"] * scale for name in weights}


class Normed:
    """A rate model that looks at the weights."""

    name = "normed"

    def __call__(self, meta, loss, weights):
        return {name: meta["scale"] / (1 + (w**2).sum()) for name, w in weights.items()}


@pytest.mark.parametrize("steps", [*STEPS, 9])
@pytest.mark.parametrize("model", [Looking(), Normed()], ids=["the loss", "the weights"])
def test_a_rate_model_may_look_at(model, steps):
    rate = Learned(model, {"scale": 0.5})
    expected = meta_gradient(PROBLEMS["classifier"], rate, steps, "reverse")
    for mode, span in EXACT[1:]:
        found = meta_gradient(PROBLEMS["classifier"], rate, steps, mode, span=span)
        assert furthest(found.gradient, expected.gradient) < 1e-10


@pytest.mark.parametrize("mode", ["reverse", "forward", "checkpointed"])
def test_an_explosion_is_reported_as_it_is(mode):
    found = meta_gradient(PROBLEMS["one weight"], 1e200, 5, mode)
    assert not found.outer_loss.isfinite()
