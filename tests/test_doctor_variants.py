"""The doctor on broken inner loops made by combination (tests/doctor_variants.py): which lines does it name?

`pytest -s` shows the misses. Each program is a file of its own, so that line numbers and tracebacks are real.
"""

import importlib.util
import math
import sys
from functools import cache
from typing import NamedTuple

import pytest
import torch
from doctor_variants import variants

from metalib.diagnosis import Diagnosis
from metalib.doctor import diagnose
from metalib.report import Undecided

pytestmark = pytest.mark.filterwarnings("ignore")

VARIANTS = variants()
BROKEN = [v for v in VARIANTS if v.broken and not v.harmless]
HARMLESS = [v for v in VARIANTS if v.broken and v.harmless]


class Row(NamedTuple):
    name: str
    line: int | None
    cause: str | None
    verdict: str
    named: int | None
    said: str | None

    def __str__(self):
        found = f"line {self.named}, {self.said}" if self.named or self.said else "no line"
        return f"{self.name:52} line {self.line}, {self.cause}; found {self.verdict}, {found}"


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """(a variant, is it the broken one) -> Row."""
    home = tmp_path_factory.mktemp("variants")

    @cache
    def judged(variant, broken):
        text = variant.broken if broken else variant.repaired
        path = home / f"{variant.name}-{'broken' if broken else 'repaired'}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # as import does
        try:
            spec.loader.exec_module(module)
            found = diagnose(module.step, module.META)
        except Undecided as refusal:
            found = Diagnosis(f"refused: {refusal}")
        finally:
            del sys.modules[spec.name]
        marked = [at for at, line in enumerate(text.splitlines(), 1) if line.endswith("# GUILTY")]
        named = found.location.lineno if found.location and found.location.filename == str(path) else None
        expected = (marked[0], variant.cause) if broken and not variant.harmless else (None, None)
        return Row(path.stem, *expected, found.verdict, named, found.cause)

    return judged


def test_there_are_enough_and_of_all_kinds():
    assert len(BROKEN) >= 120 and len(HARMLESS) >= 5
    assert len({v.name for v in VARIANTS}) == len(VARIANTS)
    assert {v.broken.count("# GUILTY") for v in BROKEN + HARMLESS} == {1}
    assert {v.repaired.count("# GUILTY") for v in VARIANTS} == {0}
    assert len({v.cause for v in BROKEN}) >= 20


def run(code, shift: float):
    """(outer loss, what autograd says of its derivative), all meta-parameters scaled by 1 + shift."""
    space = {}
    torch.manual_seed(0)  # the program is run afresh each time, with the same noise
    with torch.enable_grad():
        exec(code, space)
        meta = {name: (p * (1 + shift)).detach().double().requires_grad_() for name, p in space["META"].items()}
        value = space["step"](meta)
    if not value.requires_grad:
        return value.item(), 0.0
    grads = torch.autograd.grad(value, list(meta.values()), allow_unused=True)
    pairs = zip(grads, space["META"].values(), strict=True)
    return value.item(), sum((g * p).sum().item() for g, p in pairs if g is not None)


def is_right(text: str) -> bool:
    """Does the program run, does its loss move, and does autograd agree with a central difference in float64?"""
    code, h = compile(text.replace("torch.float32", "torch.float64"), "variant", "exec"), 1e-5
    try:
        claimed = run(code, 0.0)[1]
        true = (run(code, h)[0] - run(code, -h)[0]) / (2 * h)
    except RuntimeError:
        return False
    finally:
        torch.set_grad_enabled(True)
    return math.isfinite(true) and abs(true) > 1e-12 and abs(claimed - true) <= 1e-5 * abs(true) + 1e-9


def test_the_faults_are_what_they_say():
    """Judged without the doctor and without the referee: broken programs are wrong, all others right."""
    wrong = [v.name for v in VARIANTS if not is_right(v.repaired)]
    assert wrong == []
    assert [v.name for v in HARMLESS if not is_right(v.broken)] == []
    assert [v.name for v in BROKEN if is_right(v.broken)] == []


def test_the_guilty_line_is_named(judge):
    rows = [judge(variant, True) for variant in BROKEN]
    lines = [row for row in rows if row.named != row.line]
    causes = [row for row in rows if row.named == row.line and row.said != row.cause]
    table = "\n".join([f"{len(lines)} of {len(rows)} without their line:", *map(str, lines)])
    table += "\n".join([f"\n{len(causes)} with their line, but another cause:", *map(str, causes)])
    print(table)
    assert len(lines) <= 0.05 * len(rows), table
    assert len(lines) + len(causes) <= 0.10 * len(rows), table


def test_no_right_program_is_accused(judge):
    """The repaired twins, faults that do no harm, and right programs with unusual habits.

    In float32 the differences may be too coarse to say anything: the referee then refuses, which accuses nobody. A few
    may be refused so, and none in float64.
    """
    rows = [judge(variant, False) for variant in VARIANTS] + [judge(variant, True) for variant in HARMLESS]
    rows = [row for row in rows if (row.verdict, row.named, row.said) != ("right", None, None)]
    refused = [row for row in rows if row.verdict.startswith("refused") and "-float32" in row.name]
    print("\n".join([f"{len(refused)} refused:", *map(str, refused)]))
    assert [str(row) for row in rows if row not in refused] == []
    assert len(refused) <= 3
