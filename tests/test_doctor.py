"""What the doctor says: of every version in metalib.versions, in words and as a page, and of what it cannot judge."""

import math
import os
import time

import pytest
import torch

from metalib import diagnose, diagnose_loop, places
from metalib.causes import CAUSES
from metalib.loop_causes import LOOP_CAUSES
from metalib.report import Undecided
from metalib.settings import Settings
from metalib.unroll import meta_step
from metalib.versions import VERSIONS


def number(value):
    return torch.tensor(value, dtype=torch.float64)


# On the classifier, at two inner steps: (cause, the token on the named line).
DIAGNOSES = {
    "in_place": ("inplace_on_leaf", "weights[name] -= step[name]"),
    "in_place_no_grad": ("no_grad", "weights[name] -= step[name]"),
    "in_place_clone": ("inplace_on_saved", "weights[name] -= step[name]"),
    "data_write": ("data_write", ".data -="),
    "detach": ("detach", ".detach()"),
    "parameter_rewrap": ("parameter_rewrap", "nn.Parameter("),
    "item": ("left_torch", ".item()"),
    "buffer_published": ("no_graph", "torch.autograd.grad("),
    "buffer_no_grad": ("no_grad", "buffer.copy_("),
    "buffer_copy": ("inplace_on_saved", "buffer.copy_("),
    "buffer_rebind": (None, None),
    "first_order": ("create_graph", "create_graph=False"),
    "functional": (None, None),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gets_its_diagnosis(version):
    cause, token = DIAGNOSES[version]
    report = diagnose(*meta_step(Settings(problem="classifier", version=version, inner_steps=2)))
    assert report.cause == cause
    assert (report.verdict == "right") == (cause is None)
    if token:
        assert token in report.location.source and report.location.filename.endswith("versions.py")
    else:
        assert report.location is None and report.explanation == report.repair == ""


@pytest.mark.parametrize("inner_steps", [1, 2, 5])
@pytest.mark.parametrize("rate", ["constant", "per tensor", "from loss"])
def test_the_right_version_is_right_with_every_rate(rate, inner_steps):
    report = diagnose(*meta_step(Settings(problem="classifier", rate=rate, inner_steps=inner_steps)))
    assert (report.verdict, report.cause) == ("right", None)


def cut_step(meta):
    w = torch.tensor([0.5, -0.3], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        (grad,) = torch.autograd.grad((torch.tanh(w) ** 2).sum(), w, create_graph=True)
        w = (w - meta["rate"] * grad).detach().requires_grad_()
    return (torch.tanh(w) ** 2).sum()


def test_the_report_in_words():
    report = diagnose(cut_step, {"rate": number(0.1)})
    text = str(report).splitlines()
    assert text[0].startswith("cut: ") and text[1].startswith("  rate: autograd None, finite differences -1.15975")
    guilty = next(line for line in text if line.startswith(">"))
    assert ".detach().requires_grad_()" in guilty and f"{report.location.lineno} |" in guilty
    assert any(line.startswith("why     Line ") for line in text) and any(line.startswith("repair  ") for line in text)
    assert text[-1].startswith("gradient  rate ") and text[-1].endswith("✂")


def test_the_report_as_a_page():
    report = diagnose(cut_step, {"rate": number(0.1)})
    page = report._repr_html_()
    assert page.count("✂") == 1 and page.count("<table") == 2 and ">outer loss<" in page
    right = diagnose(lambda meta: meta["rate"] ** 2, {"rate": number(0.1)})._repr_html_()
    assert "✂" not in right and right.count("<table") == 1


def test_a_page_shows_code_as_text():
    def step(meta):
        return torch.tensor(2.0, dtype=torch.float64) * meta["rate"].item() ** 2 * (1 if 1 < 2 else "<b>")

    page = diagnose(step, {"rate": number(0.1)})._repr_html_()
    assert "&lt;b&gt;" in page and "<b>&quot;)" not in page


def test_every_cause_has_two_sentences_that_can_be_filled_in():
    for causes in (CAUSES, LOOP_CAUSES):
        for explanation, repair in causes.values():
            for sentence in (explanation, repair):
                filled = sentence.format(line=7, meta="rate", detail="(something)")
                assert filled.endswith(".") and "{line}" not in filled
            assert repair.strip()


@pytest.mark.parametrize(
    ("meta", "sentence"),
    [
        ({}, "give a dict of floating tensors"),
        ([number(0.1)], "give a dict of floating tensors"),
        ({"rate": 0.1}, "give a dict of floating tensors"),
        ({"rate": torch.tensor(1)}, "give a dict of floating tensors"),
        ({"rate": number(0.1), 3: number(0.1)}, "3: .* give a dict of floating tensors"),
    ],
)
def test_what_it_cannot_judge_gets_a_sentence(meta, sentence):
    with pytest.raises(Undecided, match=sentence):
        diagnose(cut_step, meta)


def test_a_step_that_is_not_one_number():
    report = diagnose(lambda meta: meta["rate"] * torch.ones(3), {"rate": number(0.1)})
    assert (report.verdict, report.cause) == ("raises", "not_a_number")
    assert "a tensor of shape (3,)" in report.explanation and report.location is not None
    assert diagnose(lambda meta: 0.5, {"rate": number(0.1)}).explanation.startswith("The step returns a float")


def test_a_large_meta_parameter_is_judged_along_one_direction():
    """A learned initialisation of 2,000 numbers: asking for each would take 30,000 runs."""
    runs, target = [], torch.linspace(-1, 1, 2000, dtype=torch.float64)

    def step(meta, cut=False):
        runs.append(1)
        w = meta["init"] * 1
        for _ in range(2):
            (grad,) = torch.autograd.grad((torch.tanh(w) - target).pow(2).sum(), w, create_graph=True)
            w = w - 0.1 * grad
            w = w.detach().requires_grad_() if cut else w
        return (torch.tanh(w) - target).pow(2).mean()

    meta = {"init": torch.zeros(2000, dtype=torch.float64) + 0.1}
    assert diagnose(step, meta).verdict == "right" and len(runs) < 60
    assert diagnose(lambda meta: step(meta, cut=True), meta).cause == "detach"


def test_a_module_trained_outside_the_step_is_put_back_each_time():
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1).double()
    x, before = torch.randn(5, 2, dtype=torch.float64), [p.detach().clone() for p in model.parameters()]

    def step(meta):
        loss = model(x).tanh().pow(2).mean()
        for p, grad in zip(
            model.parameters(), torch.autograd.grad(loss, model.parameters(), create_graph=True), strict=True
        ):
            p.data = p - meta["rate"] * grad
        return model(x).tanh().pow(2).mean()

    report = diagnose(step, {"rate": number(0.1)})
    assert (report.verdict, report.cause) == ("cut", "data_write")
    assert all(torch.equal(p, was) for p, was in zip(model.parameters(), before, strict=True))


def test_what_a_diagnosis_costs():
    """At most 20 plain steps and 2 s on the notebooks' problems; printed, and held loosely."""
    for problem in ("one weight", "classifier"):
        step, meta = meta_step(Settings(problem=problem, version="first_order", inner_steps=5))
        start = time.perf_counter()
        step({name: p.detach().clone().requires_grad_() for name, p in meta.items()}).backward()
        plain = time.perf_counter() - start
        diagnose(step, meta)
        whole = time.perf_counter() - start - plain
        print(f"{problem}: plain step {1000 * plain:.1f} ms, diagnosis {whole:.2f} s")
        assert math.isfinite(whole)


def test_a_loop_that_is_right():
    def train():
        rate = torch.tensor(0.1, requires_grad=True)
        optimizer = torch.optim.Adam([rate], lr=0.01)
        for _ in range(5):
            w = torch.ones(2, requires_grad=True)
            (grad,) = torch.autograd.grad((w**4).sum(), w, create_graph=True)
            optimizer.zero_grad()
            ((w - rate * grad) ** 4).sum().backward()
            optimizer.step()

    report = diagnose_loop(train)
    assert str(report) == "right: no fault of the outer loop was found"
    assert (report.cause, report.location) == (None, None)


def test_a_loop_that_raises_keeps_the_error():
    def train():
        raise ZeroDivisionError("no luck")

    report = diagnose_loop(train)
    assert report.verdict == "raises" and isinstance(report.error, ZeroDivisionError)
    assert "ZeroDivisionError: no luck" in str(report) and report.location.source.startswith("raise ZeroDivisionError")


x = torch.linspace(-1, 1, 20)
y = 2 * x


def rate_from_the_loss():
    """The first question's meta-model: two numbers that turn a loss into a rate, and their optimiser."""
    slope, offset = (torch.tensor(value, requires_grad=True) for value in (0.2, 0.1))
    return lambda loss: torch.sigmoid(slope * loss + offset), torch.optim.Adam([slope, offset], lr=1e-3)


def published_one(repaired=False):
    rate_of, optimizer = rate_from_the_loss()
    w = torch.nn.Parameter(torch.tensor(1.0))
    for _ in range(4):
        loss = ((w * x - y) ** 2).mean()
        (grad,) = torch.autograd.grad(loss, w, create_graph=True)
        step = rate_of(loss) * grad
        new = w - step if repaired else torch.nn.Parameter(w.data - step.data)
        optimizer.zero_grad()
        ((new * x - y) ** 2).mean().backward(inputs=[p for group in optimizer.param_groups for p in group["params"]])
        optimizer.step()
        w = new.detach().requires_grad_()


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.start = torch.nn.Parameter(torch.ones(()))
        self.register_buffer("now", torch.ones(()))

    def loss(self):
        return ((self.now * x - y) ** 2).mean()


def published_two():
    (rate_of, optimizer), line = rate_from_the_loss(), Line()
    for _ in range(3):
        (grad,) = torch.autograd.grad(line.loss(), line.start, create_graph=True)
        with torch.no_grad():
            line.now.copy_(line.now - rate_of(line.loss()) * grad)
        optimizer.zero_grad()
        line.loss().backward()
        optimizer.step()


def published_as_it_was():
    """Without `inputs`: backward fills the .grad of the new leaf, and reaches nothing that is to be learned."""
    rate_of, optimizer = rate_from_the_loss()
    w = torch.nn.Parameter(torch.tensor(1.0))
    for _ in range(4):
        loss = ((w * x - y) ** 2).mean()
        (grad,) = torch.autograd.grad(loss, w, create_graph=True)
        w = torch.nn.Parameter(w.data - rate_of(loss) * grad.data)
        optimizer.zero_grad()
        ((w * x - y) ** 2).mean().backward()
        optimizer.step()


def test_the_published_answers_as_whole_loops():
    report = diagnose_loop(published_as_it_was)
    assert (report.verdict, report.cause) == ("loop", "parameter_rewrap")
    assert "torch.nn.Parameter(w.data - rate_of(loss) * grad.data)" in report.location.source
    report = diagnose_loop(published_two)
    assert (report.verdict, report.cause) == ("raises", "no_graph")
    assert "torch.autograd.grad(line.loss(), line.start" in report.location.source
    assert diagnose_loop(lambda: published_one(repaired=True)).verdict == "right"


def test_a_backward_that_is_asked_for_what_it_cannot_reach():
    report = diagnose_loop(published_one)
    assert (report.verdict, report.cause) == ("loop", "parameter_rewrap")


def test_two_optimisers_that_take_turns():
    w, rate = (torch.nn.Parameter(torch.tensor(value)) for value in (1.0, 0.1))

    def train(stepped=True):
        first, second = torch.optim.SGD([w], lr=0.01), torch.optim.SGD([rate], lr=0.001)
        for _ in range(4):
            first.zero_grad()
            (w**2 - 3).pow(2).backward()
            first.step()
            second.zero_grad()
            (grad,) = torch.autograd.grad((w**2 - 3).pow(2), w, create_graph=True)
            ((w - rate * grad) ** 2 - 2).pow(2).backward()
            if stepped:
                second.step()

    assert diagnose_loop(train).verdict == "right"
    report = diagnose_loop(lambda: train(stepped=False))
    assert report.cause == "never_stepped" and "torch.optim.SGD([rate]" in report.location.source


def shadowed_step(meta):
    rate = meta["rate"]
    w = torch.tensor([0.5, -0.3], dtype=torch.float64, requires_grad=True)
    for rate in (0.1, 0.05):
        (grad,) = torch.autograd.grad((torch.tanh(w) ** 2).sum(), w, create_graph=True)
        w = w - rate * grad
    return (torch.tanh(w) ** 2).sum()


def test_a_name_that_is_used_twice():
    report = diagnose(shadowed_step, {"rate": number(0.1)})
    assert (report.verdict, report.cause) == ("independent", "shadowed")
    assert report.location.source == "for rate in (0.1, 0.05):"


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_what_surrounds_the_call_is_no_fault_of_the_step(around):
    with around():
        assert diagnose(lambda meta: meta["rate"] ** 2, {"rate": number(0.1)}).verdict == "right"
        assert torch.is_inference_mode_enabled() == (around is torch.inference_mode) and not torch.is_grad_enabled()


def tag(text):
    return lambda function: function


@tag("no_grad")
def switched_step(meta):
    with torch.set_grad_enabled(False):
        return meta["rate"] ** 2


def test_a_decorator_is_not_taken_for_another():
    report = diagnose(switched_step, {"rate": number(0.1)})
    assert report.cause == "no_grad" and report.location.source == 'return meta["rate"] ** 2'


def attention_step(meta):
    w = torch.linspace(-1, 1, 80, dtype=torch.float64).reshape(2, 2, 5, 4).requires_grad_()
    for _ in range(2):
        out = torch.nn.functional.scaled_dot_product_attention(w, w, w)
        (grad,) = torch.autograd.grad(out.pow(2).sum(), w, create_graph=True)
        w = w - meta["rate"] * grad
    return w.pow(2).sum()


def test_an_operation_without_a_second_derivative_is_named():
    report = diagnose(attention_step, {"rate": number(0.1)})
    assert (report.verdict, report.cause) == ("raises", "no_double_backward")
    assert "scaled_dot_product_attention(w, w, w)" in report.location.source


def penalty_step(meta, fresh=True):
    """A gradient penalty; with one leaf for the inputs of all steps, its gradient runs through the updates as well."""
    inputs = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()
    w = torch.tensor([[0.5], [-0.3]], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        inputs = inputs.detach().requires_grad_() if fresh else inputs
        out = torch.tanh(inputs @ w)
        (slope,) = torch.autograd.grad(out.sum(), inputs, create_graph=True)
        loss = (out - 1).pow(2).mean() + meta["weight"] * slope.pow(2).sum()
        (grad,) = torch.autograd.grad(loss, w, create_graph=True)
        w = w - 0.1 * grad
    return (torch.tanh(inputs @ w) - 1).pow(2).mean()


def test_a_gradient_penalty_is_no_update_unless_it_is():
    report = diagnose(penalty_step, {"weight": number(0.1)})
    assert (report.verdict, report.cause, report.location) == ("right", None, None)
    report = diagnose(lambda meta: penalty_step(meta, fresh=False), {"weight": number(0.1)})
    assert (report.verdict, report.cause) == ("right", "sees_update")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(math.nan, "'rate' holds nan or inf"), (math.inf, "'rate' holds nan or inf"), ([], "'rate' is empty")],
)
def test_a_meta_parameter_that_is_no_number_gets_a_sentence(value, sentence):
    with pytest.raises(Undecided, match=sentence):
        diagnose(cut_step, {"rate": number(value)})


@pytest.mark.parametrize("version", ["data_write", "buffer_no_grad", "in_place"])
def test_metalibs_own_loops_are_named_where_pip_has_put_metalib_beside_libraries_too(version, monkeypatch):
    """As `pip install .` does, and the first cell of a notebook on Colab; `pip install -e .` leaves it elsewhere."""
    beside = os.path.join(os.path.dirname(places.HERE), "")
    monkeypatch.setattr(places, "LIBRARIES", (*places.LIBRARIES, beside))
    report = diagnose(*meta_step(Settings(version=version, problem="classifier", inner_steps=2)))
    cause, token = DIAGNOSES[version]
    assert report.cause == cause and token in report.location.source
