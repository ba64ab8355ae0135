"""The doctor for code that is not a function, and its cell magic."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from metalib import diagnose_source
from metalib.diagnosis import Diagnosis
from metalib.report import Undecided

CELL = """\
import torch
x = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=torch.float64)
y = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
def loss(w):
    return ((torch.tanh(x @ w) - y) ** 2).mean()
for _ in range(3):
    (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
    w.data = w.data - lr * g
outer = loss(w)
outer.backward()
lr.grad
"""
LOOP = """\
import torch
lr = torch.tensor(0.1, requires_grad=True)
optimizer = torch.optim.SGD([lr], lr=0.1)
for _ in range(5):
    w = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((w**4).sum(), w, create_graph=True)
    loss = ((w - lr * g) ** 4).sum()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
"""


def test_a_cell_that_makes_its_own_meta_parameter():
    report = diagnose_source(CELL, ["lr"], {})
    assert (report.verdict, report.cause, report.location.lineno) == ("cut", "data_write", 10)
    assert report.location.source == "w.data = w.data - lr * g"
    assert report.expected["lr"].item() == pytest.approx(-1.88789, rel=1e-5)


@pytest.mark.parametrize("end", ["outer.backward()\n", "g_lr = torch.autograd.grad(outer, lr)\n", "outer\n"])
def test_every_way_to_end_a_cell(end):
    repaired = CELL.replace("w.data = w.data", "w = w").split("outer.backward()")[0]
    assert diagnose_source(repaired + end, ["lr"], {}).verdict == "right"
    assert diagnose_source(repaired + "print('done')\n", ["lr"], {}, loss="outer").verdict == "right"


def test_an_inner_gradient_outside_a_loop_is_not_the_end():
    one_step = CELL.replace("for _ in range(3):\n    (g,)", "(g,)").replace("    w.data = w.data", "w = w")
    assert diagnose_source(one_step, ["lr"], {}).verdict == "right"


def test_a_meta_parameter_from_before_the_cell():
    import torch

    space = {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True), "torch": torch}
    report = diagnose_source(CELL.replace(CELL.splitlines()[3], ""), ["lr"], space)
    assert report.verdict == "cut" and set(space) == {"lr", "torch"} and space["lr"].grad is None


def test_a_cell_that_is_a_whole_training_loop():
    report = diagnose_source(LOOP, [], {})
    assert (report.verdict, report.cause, report.location.lineno) == ("loop", "cleared_early", 9)
    lines = LOOP.splitlines(keepends=True)
    assert diagnose_source("".join([*lines[:4], lines[8], *lines[4:8], lines[9]]), [], {}).verdict == "right"


@pytest.mark.parametrize(
    ("code", "names", "sentence"),
    [
        (CELL, ["rate"], "'rate' is neither assigned at the top level of this code nor known"),
        (CELL.split("outer = ")[0], ["lr"], "no outer loss was found"),
        (
            CELL.replace("lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)", "lr = 0.1"),
            ["lr"],
            "'lr' is 0.1",
        ),
    ],
)
def test_what_cannot_be_diagnosed_gets_a_sentence(code, names, sentence):
    with pytest.raises(Undecided, match=sentence):
        diagnose_source(code, names, {})


def test_the_magic(capsys):
    shell = InteractiveShell()
    shell.extension_manager.load_extension("metalib")
    found = shell.run_cell_magic("diagnose", "lr", CELL)
    assert isinstance(found, Diagnosis) and found.cause == "data_write"
    assert found.location.lineno == 11 and str(found.location) == "line 11 of the cell"  # counted with the magic's line
    assert "outer" not in shell.user_ns
    assert shell.run_cell_magic("diagnose", "rate", CELL) is None
    assert capsys.readouterr().out.startswith("undecided: 'rate' is neither assigned")
