"""The doctor on public bug reports: does it name the line that the report's answer changes, and the right cause?

tests/corpus/README.md says what the programs are. They were written without a look at the doctor's rules; one test here
sees to it that the rules do not know the programs either.
"""

import ast
import builtins
import keyword
import re
import sys
from functools import cache
from pathlib import Path

import programs
import pytest
import torch

from metalib.doctor import diagnose

CORPUS = Path(__file__).with_name("corpus")
METALIB = Path(__file__).resolve().parents[1] / "metalib"

# What each report's answer blames, as a key of metalib.causes.CAUSES. Written from the reports.
CAUSE = {
    "004": "inplace_on_leaf",
    "005": "inplace_on_saved",
    "007": "inplace_on_saved",
    "009": "inplace_on_saved",
    "014": "data_write",
    "015": "data_read",
    "016": "detach",
    "018": "no_grad",  # the optimiser is the reporter's own, and the write in it stands under no_grad
    "020": "optimizer_drops_rate",
    "022": "parameter_rewrap",
    "024": "result_unused",
    "026": "detach",  # the copy is a w.detach().clone()
    "029": "create_graph",
    "030": "detached_write",
    "032": "parameter_rewrap",  # its flag is off, but with the flag on, nn.Parameter(...) would cut it too
    "034": "no_grad",
    "036": "compiled",
    "039": "not_a_parameter",
    "040": "rebound_name",
    "042": "ignored_argument",
    "045": "no_grad",  # the setter of a parametrization writes under no_grad
    "049": "unused_input",
    "050": "frozen_input",
    "055": "graph_freed",
    "062": "no_grad",
    "071": "explodes",
    "073": "no_double_backward",
    "075": "checkpoint",
    "076": "raised",  # an assertion of the GradScaler's own
    "086": "sees_update",
}

# Right gradients, for which there is no line to name.
MISSES = {"043": "the program is wrong, its gradient is right: it is the gradient of what was written"}
FALSE_ALARMS = {"084": "nothing is wrong: a linear inner loss has a constant gradient, without a history"}

# A right gradient of a doubtful program: the verdict says right, a line is named nevertheless.
DOUBTFUL = {"075", "086"}


def load(number: str):
    (path,) = CORPUS.glob(f"{number}_*.py")
    return programs.load(path)


def guilty(path: Path) -> int | None:
    marked = programs.marked(path)
    assert len(marked) <= 1, path
    return next(iter(marked), None)


@cache
def judged(number: str):
    case = load(number)
    return diagnose(case.meta_step, case.meta_params())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", CAUSE)
def test_the_line(number):
    found, path = judged(number), Path(load(number).__file__)
    assert found.location is not None, found
    assert (Path(found.location.filename), found.location.lineno) == (path, guilty(path)), found
    assert found.location.source.endswith("# GUILTY")
    assert (found.verdict == "right") == (number in DOUBTFUL), found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", CAUSE)
def test_the_cause(number):
    assert judged(number).cause == CAUSE[number], judged(number)


@pytest.mark.parametrize("number", [*MISSES, *FALSE_ALARMS])
def test_a_right_gradient_names_no_line(number):
    found = judged(number)
    assert (found.verdict, found.location, found.cause) == ("right", None, None), found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", [*CAUSE, *MISSES, *FALSE_ALARMS])
def test_the_repaired_step_is_right(number):
    case = load(number)
    found = diagnose(case.meta_step_fixed, case.meta_params())
    assert (found.verdict, found.location, found.cause) == ("right", None, None), found


@pytest.mark.filterwarnings("ignore")
def test_most_lines_and_causes_are_found():
    """The sum of it, with the expected misses counted as misses; `pytest -s` shows the table."""
    lines = causes = 0
    for number in [*CAUSE, *MISSES]:
        case, found = load(number), judged(number)
        at = found.location.lineno if found.location else None
        line, cause = at == guilty(Path(case.__file__)), found.cause == CAUSE.get(number, "not to be found")
        lines, causes = lines + line, causes + cause
        print(f"{number} {case.META['kind']:32} line {at!s:>4} {'ok  ' if line else 'MISS'}", end=" ")
        print(f"{found.verdict:12} {found.cause!s:22} {'ok' if cause else 'MISS'}")
    count = len(CAUSE) + len(MISSES)
    print(f"{lines} of {count} lines, {causes} of {count} causes")
    assert lines >= 0.95 * count and causes >= 0.90 * count


def test_every_case_is_accounted_for():
    numbers = {path.name[:3]: path for path in CORPUS.glob("*.py")}
    assert len(numbers) == 43
    steps = {number for number in numbers if load(number).META["style"] == "meta_step"}
    assert steps == {*CAUSE, *MISSES, *FALSE_ALARMS}
    assert {number for number, path in numbers.items() if guilty(path) is None} == set(FALSE_ALARMS)


def words(tree: ast.AST) -> set[str]:
    """Every name in a program: variables, functions, arguments, attributes, and the words of its strings.

    Sentences are left out, in docstrings and in what the doctor says: they may use any word, and no rule hides there.
    """
    found = set()
    for node in ast.walk(tree):
        for name in ("id", "attr", "arg", "name"):
            if isinstance(value := getattr(node, name, None), str):
                found.add(value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) < 6:
            found |= set(re.findall(r"\w+", node.value))
    return found


def own_names(tree: ast.Module) -> set[str]:
    """The names that a program gives itself: its functions, classes, arguments and variables."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def known_to_all() -> set[str]:
    """Names of Python and of PyTorch, which a rule may of course use."""
    known = {*dir(builtins), *keyword.kwlist, *sys.stdlib_module_names}
    homes = [
        torch,
        torch.Tensor,
        torch.nn,
        torch.nn.Module,
        torch.nn.functional,
        torch.optim,
        torch.func,
        torch.autograd,
    ]
    homes += [torch.autograd.Function, torch.autograd.function, torch.optim.Optimizer, torch.utils.checkpoint]
    words = {"assign", "losses"}  # "cannot assign ... as parameter" is a message of PyTorch's; all programs have losses
    return known.union(words, *map(dir, homes))


def test_no_rule_knows_a_case():
    """A name that only one case uses must not stand in the sources of the doctor, nor may a case's name or number."""
    trees = {path.name: ast.parse(path.read_text()) for path in CORPUS.glob("*.py")}
    used_by: dict[str, set[str]] = {}
    for name, tree in trees.items():
        for word in own_names(tree):
            used_by.setdefault(word, set()).add(name)
    peculiar = {word for word, cases in used_by.items() if len(cases) == 1 and len(word) >= 6} - known_to_all()
    peculiar |= {path.stem for path in CORPUS.glob("*.py")} | {path.stem[4:] for path in CORPUS.glob("*.py")}
    assert len(peculiar) >= 100
    for path in doctor_files():
        found = words(ast.parse(path.read_text())) & peculiar
        assert not found, f"{path.name} knows {sorted(found)}"


def doctor_files() -> list[Path]:
    """All that diagnoses, with what it imports from metalib, up to the referee, which is older and knows the lab."""
    todo, found = [name for name in ("doctor", "outer", "cells") if (METALIB / f"{name}.py").exists()], []
    while todo:
        path = METALIB / f"{todo.pop()}.py"
        if path in found:
            continue
        found.append(path)
        if path.stem == "referee":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("metalib."):
                todo.append(node.module.removeprefix("metalib."))
    return found
