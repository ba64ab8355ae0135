"""Whatever a person or a notebook may give: a sentence that names the value and the next step, or a right answer.

Hypothesis makes the values up. EXAMPLES sets how many it tries a function (here few, so that the suite stays short;
2,000 were tried of each: `EXAMPLES=2000 pytest tests/test_bad_input.py -n 0`).
"""

import math
import os

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from metalib import FromModule, meta_gradient
from metalib.exercises import EXERCISES, examine, load
from metalib.exercises.checking import Finding
from metalib.metagrad import MODES
from metalib.optimisers import SGD, Adam, Clipped
from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.referee import referee
from metalib.report import VERDICTS, Undecided
from metalib.resume import load_state, save_state, start
from metalib.settings import DTYPES, Settings
from metalib.sweep import grid
from metalib.tables import load_csv, save_csv
from metalib.train import complete
from metalib.versions import VERSIONS

load()
EXAMPLES = int(os.environ.get("EXAMPLES", "60"))
many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES < 100
)

INF, NAN = math.inf, math.nan
NUMBERS = [0, -1, 1, 2, 5, 10**9, 2.5, 0.1, 1e-3, -0.1, 1e300, 1e-300, INF, -INF, NAN, True, False, 10**400]
OTHERS = [None, "5", "", "0.1", b"1", [], [1], (2,), {}, {"rate": 1}, object(), int, 1j, torch.tensor(3), torch.ones(2)]
anything = st.one_of(st.sampled_from(NUMBERS), st.sampled_from(OTHERS), st.integers(), st.floats(), st.text(max_size=4))


def or_a_sentence(work, kinds=(ValueError,)):
    """The result, or None where there is a refusal; the refusal must read as a sentence with a way on."""
    try:
        return work()
    except kinds as refusal:
        text = str(refusal)
        assert len(text.split()) >= 5 and ":" in text and "Traceback" not in text, text
        return None


FIELDS = {
    "problem": st.sampled_from([*PROBLEMS, "chess", 3]), "version": st.sampled_from([*VERSIONS, "right", None]),
    "rate": st.sampled_from([*RATES, "", 0.1]), "dtype": st.sampled_from([*DTYPES, "float16", torch.float32]),
    "device": st.sampled_from(["cpu", "cuda", "mps", "tpu", 0]),
}  # fmt: skip


@many
@given(st.data())
def test_settings(data):
    names = data.draw(st.lists(st.sampled_from(list(vars(Settings()))), max_size=4, unique=True))
    chosen = {name: data.draw(st.one_of(FIELDS.get(name, anything), anything)) for name in names}
    made = or_a_sentence(lambda: Settings(**chosen))
    if made is not None:
        assert 1 <= made.inner_steps <= 1000 and 0 < made.start_rate <= 1e6 and made.problem in PROBLEMS
        assert isinstance(made.inner_steps, int) and type(made.meta_rate) is float


@many
@given(st.sampled_from(["seed", "inner_steps", "version"]), st.one_of(anything, st.lists(anything, max_size=3)))
def test_a_grid(name, values):
    made = or_a_sentence(lambda: grid(Settings(), **{name: values}))
    assert made is None or all(isinstance(each, Settings) for each in made)


@many
@given(
    problem=st.sampled_from(list(PROBLEMS)),
    rate=st.one_of(anything, st.floats(1e-3, 0.5)),
    inner_steps=st.one_of(st.integers(1, 4), st.sampled_from([0, -1, 2.5, "5", None, True, 10**9])),
    mode=st.one_of(st.sampled_from([*MODES, "auto"]), st.sampled_from(["", None, "fast", 1])),
    span=st.one_of(st.none(), st.integers(-1, 6), anything),
    optimiser=st.sampled_from([SGD(), SGD(momentum=0.9), Adam(), Clipped(0.5), None, "Adam", SGD]),
)
def test_meta_gradient(problem, rate, inner_steps, mode, span, optimiser):
    if inner_steps == 10**9:
        return  # allowed, and takes a while
    generator = torch.Generator().manual_seed(0)
    choices = {"optimiser": optimiser, "span": span, "generator": generator}
    found = or_a_sentence(lambda: meta_gradient(PROBLEMS[problem], rate, inner_steps, mode, **choices))
    if found is None or found.mode in ("truncated", "first_order", "batched"):
        return
    same = {"optimiser": optimiser, "generator": torch.Generator().manual_seed(0)}
    exact = meta_gradient(PROBLEMS[problem], rate, inner_steps, "reverse", **same)
    for name, gradient in found.gradient.items():
        assert torch.allclose(gradient, exact.gradient[name], rtol=1e-8, equal_nan=True)


MODULES = {
    "linear": lambda: nn.Linear(3, 2),
    "batchnorm": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)),
    "batchnorm, eval": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval(),
    "dropout": lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)),
    "dropout, eval": lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).eval(),
    "frozen": lambda: frozen(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))),
    "tied": lambda: tied(nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Linear(3, 2))),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)),
    "lstm": lambda: First(nn.LSTM(3, 2, batch_first=True)),
    "relu": lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)),
    "embedding": lambda: nn.Embedding(3, 2),
    "lazy": lambda: nn.LazyLinear(2),
    "meta": lambda: nn.Linear(3, 2, device="meta"),
    "all frozen": lambda: nn.Linear(3, 2).requires_grad_(False),
    "no parameters": nn.Tanh,
    "half": lambda: nn.Linear(3, 2).half(),
    "complex": lambda: nn.Linear(3, 2).to(torch.complex64),
    "not a module": lambda: 3,
    "a function": lambda: torch.tanh,
}


class First(nn.Module):
    """A recurrent network's outputs, without its states."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.unsqueeze(1))[0][:, 0]


def frozen(net):
    net[0].weight.requires_grad_(False)
    return net


def tied(net):
    net[2].weight = net[0].weight
    return net


XS = {
    "rows": torch.randn(5, 3, generator=torch.Generator().manual_seed(1)),
    "empty": torch.empty(0, 3),
    "one row": torch.ones(1, 3),
    "flat": torch.ones(3),
    "wide": torch.ones(5, 7),
    "integers": torch.ones(5, 3, dtype=torch.long),
    "half": torch.ones(5, 3, dtype=torch.float16),
    "complex": torch.ones(5, 3, dtype=torch.complex64),
    "nan": torch.full((5, 3), NAN),
    "none": None,
    "list": [[1.0, 2.0, 3.0]] * 5,
    "elsewhere": torch.ones(5, 3, device="meta"),
}
YS = {
    "numbers": torch.linspace(-1, 1, 10).view(5, 2),
    "labels": torch.tensor([0, 1, 0, 1, 1]),
    "labels out of range": torch.tensor([0, 1, 2, 9, -3]),
    "empty": torch.empty(0, 2),
    "other shape": torch.ones(4, 7),
    "none": None,
}
CRITERIA = {
    "squares": lambda out, y: ((out - y) ** 2).mean(),
    "cross entropy": nn.functional.cross_entropy,
    "not reduced": lambda out, y: (out - y) ** 2,
    "not connected": lambda out, y: torch.tensor(1.0),
    "detached": lambda out, y: (out.detach() ** 2).mean(),
    "a number": lambda out, y: 1.0,
    "nothing": lambda out, y: None,
    "kinked": lambda out, y: (out - y).abs().mean(),
}


@many
@given(
    module=st.sampled_from(list(MODULES)),
    x=st.one_of(st.just("rows"), st.sampled_from(list(XS))),
    y=st.one_of(st.just("numbers"), st.sampled_from(list(YS))),
    criterion=st.one_of(st.just("squares"), st.sampled_from(list(CRITERIA))),
    mode=st.sampled_from(["auto", "reverse", "forward", "checkpointed", "batched"]),
    inner_steps=st.integers(1, 3),
)
def test_a_module_of_ones_own(module, x, y, criterion, mode, inner_steps):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = MODULES[module]()
    double = isinstance(net, nn.Module) and module not in ("half", "complex", "lazy", "meta")
    net, data = (net.double() if double else net), XS[x]
    data = data.double() if isinstance(data, torch.Tensor) and data.dtype == torch.float32 else data
    target = YS[y].double() if y in ("numbers", "empty", "other shape") else YS[y]
    rate = [0.1, 0.2] if mode == "batched" else 0.1

    def run():
        problem = FromModule(net, CRITERIA[criterion], [(data, target)], (data, target))
        return problem, meta_gradient(problem, torch.tensor(rate), inner_steps, mode)

    made = or_a_sentence(run, (ValueError,))
    if made is None:
        return
    problem, found = made
    gradient = found.gradient["rate"]
    if not found.outer_loss.isfinite().all():
        assert not gradient.isfinite().all() or found.outer_loss.isinf().any() or x == "nan"
        return
    if found.outer_loss.dtype != torch.float64 or module == "half":
        return  # too coarse for differences
    for place, at in enumerate([0.1] if mode != "batched" else [0.1, 0.2]):
        near = [meta_gradient(problem, at + d, inner_steps, "reverse").outer_loss.item() for d in (1e-6, -1e-6)]
        slope = (near[0] - near[1]) / 2e-6
        assert gradient.flatten()[place].item() == pytest.approx(slope, rel=1e-3, abs=1e-6)


W = torch.tensor(1.0, dtype=torch.float64)
STEPS = {
    "right": lambda meta: (W - meta["rate"] * 3) ** 2,
    "cut": lambda meta: (W - meta["rate"].detach() * 3) ** 2 + 0 * W,
    "wrong": lambda meta: (W - meta["rate"] * 3) ** 2 + meta["rate"].detach() ** 2,
    "independent": lambda meta: W**2,
    "float32": lambda meta: ((W - meta["rate"] * 3) ** 2).float(),
    "vector": lambda meta: torch.stack([W, W]) * meta["rate"],
    "nothing": lambda meta: None,
    "a number": lambda meta: 3.0,
    "raises": lambda meta: meta["rate"].no_such_thing,
    "nan": lambda meta: (meta["rate"] - 10).sqrt(),
    "another key": lambda meta: meta["alpha"] * 2,
    "random": lambda meta: meta["rate"] * torch.rand(()).double(),
    "unseeded": lambda meta, calls=[]: calls.append(1) or meta["rate"] * len(calls),  # noqa: B006 - meant
    "complex": lambda meta: (meta["rate"] * 1j) ** 2,
    "integer": lambda meta: (meta["rate"] * 3).long(),
}
EXPECTED = {"right": "right", "cut": "cut", "wrong": "wrong", "independent": "independent", "random": "right"}
METAS = {
    "number": lambda: {"rate": torch.tensor(0.1)},
    "a view": lambda: {"rate": torch.linspace(0.1, 1, 4)[:1].squeeze()},
    "expanded": lambda: {"rate": torch.tensor(0.1).expand(1).squeeze()},
    "not a leaf": lambda: {"rate": torch.tensor(0.05, requires_grad=True) * 2},
    "a parameter": lambda: {"rate": nn.Parameter(torch.tensor(0.1))},
    "shared twice": lambda: dict.fromkeys(("rate", "again"), torch.tensor(0.1)),
    "half": lambda: {"rate": torch.tensor(0.1, dtype=torch.float16)},
    "integer": lambda: {"rate": torch.tensor(1)},
    "complex": lambda: {"rate": torch.tensor(0.1j)},
    "nan": lambda: {"rate": torch.tensor(NAN)},
    "empty": lambda: {"rate": torch.empty(0)},
    "no tensor": lambda: {"rate": 0.1},
    "nothing": lambda: {},
    "a list": lambda: [0.1],
    "none": lambda: None,
    "meta device": lambda: {"rate": torch.tensor(0.1, device="meta")},
    "sparse": lambda: {"rate": torch.ones(2).to_sparse()},
    "inference": lambda: {"rate": inferred()},
}


def inferred():
    with torch.inference_mode():
        return torch.tensor(0.1)


@many
@given(step=st.sampled_from(list(STEPS)), meta=st.sampled_from(list(METAS)), rtol=st.sampled_from([1e-6, 1e-3]))
def test_the_referee(step, meta, rtol):
    report = or_a_sentence(lambda: referee(STEPS[step], METAS[meta](), rtol=rtol), (Undecided,))
    if report is not None:
        assert report.verdict in VERDICTS
        fine = meta in ("number", "a view", "expanded", "not a leaf", "a parameter", "inference")
        if fine and step in EXPECTED:
            assert report.verdict == EXPECTED[step]
    elif meta == "number":
        assert step in ("float32", "vector", "nothing", "a number", "unseeded", "complex", "integer")


@many
@given(name=st.sampled_from(sorted(EXERCISES)), answer=anything)
def test_every_check_answers_in_words(name, answer):
    finding = examine(name, answer)
    assert isinstance(finding, Finding) and not finding.solved and len(finding.why.split()) >= 4


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    runs = [complete(Settings(outer_steps=2, seed=seed, problem="classifier", rate="per tensor")) for seed in (0, 1)]
    save_csv(runs, folder / "runs.csv")
    save_state(start(Settings(problem="classifier")), folder / "run.json")
    return {name: (folder / name).read_bytes() for name in ("runs.csv", "run.json")}, folder


@many
@given(data=st.data(), name=st.sampled_from(["runs.csv", "run.json"]))
def test_files_that_were_changed(files, data, name):
    """Cut, overwritten, doubled or swapped: a sentence, or what can be read; the file itself is never touched."""
    whole, path = files[0][name], files[1] / f"changed-{name}"
    start_, end = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    middle = data.draw(
        st.one_of(st.binary(max_size=6), st.just(whole[start_:end] * 2), st.sampled_from([b",", b"\n", b'"']))
    )
    changed = whole[:start_] + middle + whole[end:]
    path.write_bytes(changed)
    or_a_sentence(lambda: (load_csv if name == "runs.csv" else load_state)(path))
    assert path.read_bytes() == changed
