"""Every version really does what its docstring says, on a linear and a non-linear model, at 1, 2 and 5 steps."""

import pytest
import torch

from metalib.describe import symptom
from metalib.referee import judge
from metalib.settings import Settings
from metalib.train import train
from metalib.unroll import begin, draw, unroll
from metalib.versions import VERSIONS

STEPS = (1, 2, 5)
RAISES, CUT, RIGHT = ["raises"] * 3, ["cut"] * 3, ["right"] * 3
LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"

# version: verdicts at 1, 2 and 5 steps on the one weight and on the classifier, and the message where one raises
EXPECTED = {
    "in_place": (RAISES, RAISES, LEAF),
    "in_place_no_grad": (CUT, CUT, ""),
    "in_place_clone": (RIGHT, ["right", "raises", "raises"], OVERWRITTEN),
    "data_write": (CUT, CUT, ""),
    "detach": (CUT, CUT, ""),
    "parameter_rewrap": (CUT, CUT, ""),
    "item": (CUT, CUT, ""),
    "buffer_published": (RAISES, RAISES, NO_GRAPH),
    "buffer_no_grad": (CUT, CUT, ""),
    "buffer_copy": (RIGHT, ["right", "raises", "raises"], OVERWRITTEN),
    "buffer_rebind": (RIGHT, RIGHT, ""),
    "first_order": (["right", "wrong", "wrong"], ["right", "wrong", "wrong"], ""),
    "functional": (RIGHT, RIGHT, ""),
}
SILENTLY_CUT = [name for name, (linear, _, _) in EXPECTED.items() if linear == CUT]


def test_the_table_is_complete():
    assert list(EXPECTED) == list(VERSIONS)


@pytest.mark.parametrize("rate", ["constant", "per tensor"])
@pytest.mark.parametrize("problem", ["one weight", "classifier", "classifier, random labels"])
@pytest.mark.parametrize("version", VERSIONS)
def test_verdicts(version, problem, rate):
    linear, network, message = EXPECTED[version]
    expected = linear if problem == "one weight" else network
    for inner_steps, verdict in zip(STEPS, expected, strict=True):
        report = judge(Settings(problem=problem, version=version, rate=rate, inner_steps=inner_steps))
        assert report.verdict == verdict, f"K = {inner_steps}: {report}"
        if verdict == "raises":
            assert isinstance(report.error, RuntimeError) and message in str(report.error)


@pytest.mark.parametrize("problem", ["one weight", "classifier"])
@pytest.mark.parametrize("version", VERSIONS)
def test_verdicts_when_the_rate_comes_from_the_loss(version, problem):
    """The same, but for first_order: the rate's own graph passes through the loss, whose graph has been freed."""
    linear, network, _ = EXPECTED[version]
    expected = linear if problem == "one weight" else network
    if version == "first_order":
        expected = ["right", "raises", "raises"]
    found = [judge(Settings(problem=problem, version=version, rate="from loss", inner_steps=k)).verdict for k in STEPS]
    assert found == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_version_that_runs_computes_the_same_loss_as_the_functional_one(version):
    """What is broken is the graph, never the value: so finite differences of a broken loop are the true gradient."""
    for problem in ("one weight", "classifier"):
        losses = []
        for name in (version, "functional"):
            settings = Settings(problem=problem, version=name, inner_steps=5, dtype="float64")
            generator, weights, meta = begin(settings)
            try:
                losses.append(unroll(settings, meta, weights, draw(settings, generator)).outer_loss.item())
            except RuntimeError:
                assert "raises" in EXPECTED[version][1]
                return
        assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.parametrize("rate", ["constant", "per tensor", "from loss"])
@pytest.mark.parametrize("version", SILENTLY_CUT)
def test_a_cut_versions_meta_parameters_never_move(version, rate):
    settings = Settings(version=version, rate=rate, problem="classifier", inner_steps=2, outer_steps=20)
    records = list(train(settings))
    assert len(records) == 20
    assert {gradient for record in records for gradient in record.meta_gradient.values()} == {None}
    assert {tuple(record.rates.items()) for record in records} == {tuple(records[0].rates.items())}


def test_a_clone_of_the_single_weight_may_be_overwritten_since_nothing_saved_it():
    """Not even a plain backward raises: `w * x` saves x, and the loss saves the difference."""
    settings = Settings(version="in_place_clone", inner_steps=5)
    generator, weights, meta = begin(settings)
    unroll(settings, meta, weights, draw(settings, generator)).outer_loss.backward()
    assert meta["log_rate"].grad != 0


@pytest.mark.parametrize("version", ["in_place_clone", "buffer_copy"])
def test_a_plain_backward_finds_the_overwritten_tensor_at_one_step_already(version):
    settings = Settings(problem="classifier", version=version, inner_steps=1)
    generator, weights, meta = begin(settings)
    outer_loss = unroll(settings, meta, weights, draw(settings, generator)).outer_loss
    with pytest.raises(RuntimeError, match=OVERWRITTEN):
        outer_loss.backward()


@pytest.mark.parametrize("version", VERSIONS)
def test_each_docstrings_first_line_names_symptom_and_token(version):
    line = symptom(version)
    assert line.startswith(("Raises", "Silent", "Right"))
    assert version == "functional" or "`" in line or "parameter" in line
    assert line.endswith(".") or line.endswith(").")


@pytest.mark.parametrize("names", [("a.b", "a_b"), ("w", "w_start"), ("names", "weights"), ("training", "weight_0")])
@pytest.mark.parametrize("version", ["buffer_rebind", "buffer_copy"])
def test_buffers_keep_apart_weights_of_any_name(version, names):
    rate = torch.tensor(0.25, requires_grad=True)
    leaves = {name: torch.tensor(float(number), requires_grad=True) for number, name in enumerate(names, start=1)}

    def loss(weights):
        return sum(number * w**2 for number, w in enumerate(weights.values(), start=1))

    last = VERSIONS[version](leaves, [loss], lambda loss: {name: rate for name in names})
    assert {name: w.item() for name, w in last.items()} == {names[0]: 1 - 0.25 * 2 * 1, names[1]: 2 - 0.25 * 4 * 2}


@pytest.mark.parametrize("name", ["in_place_clone", "buffer_copy"])
def test_a_symptom_that_depends_on_what_is_asked_for_says_so(name):
    assert "for the rate's gradient alone" in symptom(name)
