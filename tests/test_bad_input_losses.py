"""A loss function, weights, a task and a rate model of one's own: the right meta-gradient, or a sentence.

Hypothesis combines them, as in test_bad_input.py, where EXAMPLES is explained. What the reader's own code raises
comes out as it is; the referee of a number is the difference of two outer losses.
"""

import traceback

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_bad_input import INF, NAN, inferred, many, or_a_sentence
from test_own import Detaching, Leaky, Once, Raising, Tanh
from torch import nn

from metalib import meta_gradient
from metalib.metagrad import MODES
from metalib.optimisers import SGD, Adam, Clipped
from metalib.problems import Batch, Task
from metalib.rates import RATES, Learned

DRAW = torch.Generator().manual_seed(1)
X = torch.randn(5, 3, dtype=torch.float64, generator=DRAW)
Y = torch.linspace(-1, 1, 10, dtype=torch.float64).view(5, 2)
W = torch.randn(3, 2, dtype=torch.float64, generator=DRAW)


def right(w, b):
    return ((torch.tanh(b[0] @ w["w"]) - b[1]) ** 2).mean()


def using(function):
    return lambda w, b: ((function.apply(b[0] @ w["w"]) - b[1]) ** 2).mean()


def writes(w, b):
    with torch.no_grad():
        w["w"].add_(0.1)
    return right(w, b)


def normed(w, b):
    return ((b[0] @ torch._weight_norm(w["w"].T, torch.ones(2, 1, dtype=b[0].dtype), 0).T - b[1]) ** 2).mean()


def inner_gradient(w, b, **graph):
    return torch.autograd.grad(right(w, b), w["w"], **graph)[0].square().sum()


LOSSES = {
    "right": right,
    "of all weights": lambda w, b: sum((t**2).sum() for t in w.values()) + right(w, b),
    "linear": lambda w, b: w["w"].sum(),
    "a right Function": using(Tanh),
    "a kinked Function": using(Leaky),
    "once differentiable": using(Once),
    "a Function that detaches": using(Detaching),
    "a Function that raises": using(Raising),
    "weight norm": normed,
    "a gradient's size": lambda w, b: inner_gradient(w, b, create_graph=True),
    "torch.func.grad": lambda w, b: torch.func.grad(lambda v: right({"w": v}, b))(w["w"]).square().sum(),
    "raises": lambda w, b: w["no such weight"],
    "writes": writes,
    "clears": lambda w, b: (right(w, b), w.clear())[0],
    "vector": lambda w, b: b[0] @ w["w"],
    "one in a row": lambda w, b: right(w, b).reshape(1),
    "a number": lambda w, b: 1.0,
    "none": lambda w, b: None,
    "integer": lambda w, b: (w["w"] > 0).sum(),
    "complex": lambda w, b: right(w, b) * 1j,
    "detached": lambda w, b: right(w, b).detach(),
    "of other weights": lambda w, b: (W * 1).requires_grad_().sum(),
    "no_grad": torch.no_grad()(right),
    "inference": lambda w, b: torch.inference_mode()(right)(w, b),
    "half": lambda w, b: right(w, b).half(),
    "draws": lambda w, b: right(w, b) * torch.rand(()),
    "backward": lambda w, b: right(w, b).backward() or right(w, b),
    "nan": lambda w, b: (right(w, b) - 100).sqrt(),
    "inf": lambda w, b: right(w, b) / 0,
    "meta": lambda w, b: right(w, b).to("meta"),
    "sparse": lambda w, b: right(w, b).reshape(1).to_sparse(),
    "not callable": 3,
    "a class": dict,
    "a module": nn.Linear(1, 1),
    "nothing": None,
}
WEIGHTS = {
    "right": lambda: {"w": W.clone()},
    "two": lambda: {"w": W.clone(), "v": W.clone()},
    "that want grad": lambda: {"w": W.clone().requires_grad_()},
    "a parameter": lambda: {"w": nn.Parameter(W.clone())},
    "not a leaf": lambda: {"w": W.clone().requires_grad_() * 1},
    "a view": lambda: {"w": torch.cat([W, W])[:3]},
    "transposed": lambda: {"w": W.t().contiguous().t()},
    "expanded": lambda: {"w": W[:, :1].expand(3, 2)},
    "shared": lambda: dict.fromkeys("wv", W.clone()),
    "one and its view": lambda: (lambda t: {"w": t[:3], "v": t})(torch.cat([W, W])),
    "inference": lambda: {"w": W.clone(), "v": inferred()},
    "float32": lambda: {"w": W.float()},
    "mixed": lambda: {"w": W.clone(), "v": W.half()},
    "complex": lambda: {"w": W * (1 + 0j)},
    "integer": lambda: {"w": W.clone(), "n": torch.tensor(3)},
    "empty": lambda: {"w": W.clone(), "e": torch.empty(0, dtype=torch.float64)},
    "of another shape": lambda: {"w": torch.tensor(1.0, dtype=torch.float64)},
    "nan": lambda: {"w": W * NAN},
    "inf": lambda: {"w": W * INF},
    "zero": lambda: {"w": W * 0},
    "nothing": dict,
    "a list": lambda: [W],
    "a tensor": lambda: W,
    "none": lambda: None,
    "numbers": lambda: {"w": 1.0},
    "odd names": lambda: {"w": W.clone(), 3: W.clone(), "": W.clone()},
    "meta": lambda: {"w": W.to("meta")},
    "sparse": lambda: {"w": W.to_sparse()},
    "named rate": lambda: {"w": W.clone(), "rate": W.clone()},
}
ONE = Batch(X, Y)
TASKS = {
    "right": lambda k: Task([ONE] * k, ONE),
    "plain tuples": lambda k: Task([(X, Y)] * k, (X, Y)),
    "several batches": lambda k: Task([Batch(X * (i + 1), Y) for i in range(k)], ONE),
    "a tuple": lambda k: ([ONE] * k, ONE),
    "a list": lambda k: [[ONE] * k, ONE],
    "one too many": lambda k: Task([ONE] * (k + 1), ONE),
    "none": lambda k: None,
    "a number": lambda k: 3,
    "a batch for a list": lambda k: Task(ONE, ONE),
    "of nothing": lambda k: Task([None] * k, None),
    "a generator": lambda k: Task((ONE for _ in range(k)), ONE),
    "two": lambda k: [Task([ONE] * k, ONE)] * 2,
    "a dict": lambda k: {"inner": [ONE] * k, "outer": ONE},
}


def model(of):
    """A rate model with the meta-parameters a and b."""
    return Learned(of, {"a": torch.tensor(0.1), "b": torch.tensor(0.05)})


def for_all(rate):
    """A model's answer: this rate for every weight."""
    return model(lambda meta, loss, weights: dict.fromkeys(weights, rate(meta, loss, weights)))


GIVEN = {
    "a number": 0.1,
    "two": [0.1, 0.2],
    "per tensor": {"w": 0.1},
    "per number": {"w": torch.full((3, 2), 0.1)},
    "of another shape": {"w": torch.full((2, 2), 0.1)},
    "of another name": {"z": 0.1},
    "nothing": {},
    "both": {"rate": 0.1, "w": 0.2},
    "complex": 0.1j,
    "matrix": torch.ones(2, 2),
    "from loss": for_all(lambda meta, loss, weights: meta["a"] * loss + meta["b"]),
    "from weights": for_all(lambda meta, loss, weights: meta["a"] + (weights["w"] ** 2).mean() / 9),
    "ours": Learned(RATES["from loss"], RATES["from loss"].start(0.1, {"w": W})),
    "once differentiable": for_all(lambda meta, loss, weights: Once.apply(meta["a"] * loss + meta["b"])),
    "constant": for_all(lambda meta, loss, weights: torch.tensor(0.1)),
    "a float": for_all(lambda meta, loss, weights: 0.1),
    "float32": for_all(lambda meta, loss, weights: meta["a"].float()),
    "imaginary": for_all(lambda meta, loss, weights: meta["a"] * 1j),
    "a row": for_all(lambda meta, loss, weights: meta["a"] * torch.ones(7)),
    "one rate": model(lambda meta, loss, weights: meta["a"]),
    "of one weight": model(lambda meta, loss, weights: {"w": meta["a"]}),
    "per weight": model(lambda meta, loss, weights: {name: meta["a"] * w.abs() for name, w in weights.items()}),
    "that raises": model(lambda meta, loss, weights: {"w": meta["no such number"]}),
    "no model": model(None),
    "no meta": Learned(lambda meta, loss, weights: weights, None),
    "an empty meta": Learned(lambda meta, loss, weights: weights, {}),
}
RULES = [SGD(), SGD(momentum=0.9, nesterov=True, weight_decay=0.1), Adam(), Clipped(0.5)]


def raised_here(error: Exception) -> bool:
    """Whether the reader's own code, which is this file's, raised it, and not metalib's."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return [file for file in files if file == __file__ or "/metalib/" in file.replace("\\", "/")][-1] == __file__


def smooth_slope(outer_loss):
    """The slope of a function at 0, or None where differences do not settle."""
    up, down, up2, down2 = (outer_loss(d) for d in (1e-6, -1e-6, 5e-7, -5e-7))
    wide, slope = (up - down) / 2e-6, (up2 - down2) / 1e-6
    return slope if abs(wide - slope) <= 1e-4 * max(1e-3, abs(slope)) else None  # nan and inf do not settle


@many
@given(
    loss=st.one_of(st.just("right"), st.sampled_from(sorted(LOSSES))),
    start=st.one_of(st.just("right"), st.sampled_from(sorted(WEIGHTS))),
    data=st.one_of(st.just("right"), st.just("right"), st.sampled_from(sorted(TASKS))),
    rate=st.one_of(st.just("a number"), st.sampled_from(sorted(GIVEN))),
    steps=st.integers(1, 3),
    mode=st.sampled_from(["auto", *MODES]),
    optimiser=st.sampled_from(RULES),
    span=st.sampled_from([None, 1, 2]),
)
def test_a_loss_of_ones_own(loss, start, data, rate, steps, mode, optimiser, span):
    weights, task, state = WEIGHTS[start](), TASKS[data](steps), torch.get_rng_state()
    tensors = [w for w in (weights.values() if isinstance(weights, dict) else []) if isinstance(w, torch.Tensor)]
    before = [(w, w.detach().clone(), w.requires_grad) for w in tensors]

    def run(rate, mode):
        choices = {"optimiser": optimiser, "span": span, "weights": weights, "task": task}
        try:
            return meta_gradient(LOSSES[loss], rate, steps, mode, **choices)
        except Exception as error:
            if not isinstance(error, ValueError) and raised_here(error):
                before.clear()  # whatever it has done until then is its own affair
                return None
            raise

    found = or_a_sentence(lambda: run(GIVEN[rate], mode))
    assert torch.equal(torch.get_rng_state(), state)
    for w, value, wanted in before:
        assert w.requires_grad == wanted and w.is_meta == value.is_meta
        assert w.is_meta or torch.equal(torch.nan_to_num(w.detach().to_dense()), torch.nan_to_num(value.to_dense()))
    if found is None or found.mode in ("truncated", "first_order", "batched"):
        return
    if found.outer_loss.dtype == torch.float64 and start != "mixed" and rate != "float32":
        check_slopes(found, GIVEN[rate], lambda moved: run(moved, found.mode))


def check_slopes(found, rate, run):
    """Each number of the meta-gradient is the slope of the outer loss, wherever that is smooth."""
    meta = rate.meta if isinstance(rate, Learned) else rate if isinstance(rate, dict) else {"rate": rate}
    for name, number in meta.items():
        number = torch.as_tensor(number, dtype=torch.float64)
        if number.dim():
            continue

        def outer_loss(shift, name=name, number=number):
            moved = {**meta, name: number + shift}
            return run(rate._replace(meta=moved) if isinstance(rate, Learned) else moved).outer_loss.item()

        slope = smooth_slope(outer_loss)
        if slope is not None:
            assert found.gradient[name].item() == pytest.approx(slope, rel=1e-3, abs=1e-6)
