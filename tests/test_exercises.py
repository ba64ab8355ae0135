"""Every check is tried on wrong answers, each with the diagnosis that it must get, and on right ones.

And the notebooks hold every exercise with its parts: a start that runs and is not yet right, the check, two hints and a
folded solution that the check accepts.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

from metalib.exercises import EXERCISES, GOALS, check, examine, goal, load

HERE = Path(__file__).parent
NOTEBOOKS = {path.name[:2]: path for path in (HERE.parent / "notebooks").glob("*.ipynb")}
ANSWERS = [import_module(f"answers.{path.stem}") for path in sorted((HERE / "answers").glob("[a-z]*.py"))]
WRONG = {name: answers for module in ANSWERS for name, answers in module.WRONG.items()}
RIGHT = {name: answers for module in ANSWERS for name, answers in module.RIGHT.items()}

load()


def by_number(name):
    return [int(part) for part in name.split(".")]


NAMES = sorted(EXERCISES, key=by_number)
SUMMARY = re.compile(r"<summary>(.*?)</summary>(.*?)</details>", flags=re.DOTALL)


def parts(name):
    """(title cell, start cell, check cell, folded cell) of an exercise in its notebook."""
    notebook = nbformat.read(NOTEBOOKS[f"{by_number(name)[0]:02}"], as_version=4)
    heading = f"## Exercise {name} · {EXERCISES[name].title}\n"
    (place,) = [at for at, cell in enumerate(notebook.cells) if cell.source.startswith(heading)]
    cells = notebook.cells[place : place + 4]
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown"], name
    return cells


def folded(name):
    """{summary: text} of the hints and the solution."""
    return {title: text.strip() for title, text in SUMMARY.findall(parts(name)[3].source)}


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def run(source, name):
    """Run a start or a solution and return the answer that the notebook's check is given."""
    (call,) = [node for node in ast.walk(ast.parse(parts(name)[2].source)) if isinstance(node, ast.Call)]
    assert call.func.id == "check" and call.args[0].value == name
    scope = {}
    exec(source, scope)
    return eval(ast.unparse(call.args[1]), scope)


def test_there_are_at_least_twenty():
    assert len(NAMES) >= 20


def test_every_exercise_has_answers_of_both_kinds():
    assert sorted(WRONG, key=by_number) == sorted(RIGHT, key=by_number) == NAMES
    for name in NAMES:
        assert len(WRONG[name]) >= 4 and RIGHT[name], name


@pytest.mark.parametrize(("name", "which"), [(name, which) for name in WRONG for which in range(len(WRONG[name]))])
def test_a_wrong_answer_is_rejected_and_told_why(name, which):
    says, answer = WRONG[name][which]
    finding = examine(name, answer)
    assert not finding.solved, finding
    assert says in finding.why, finding


@pytest.mark.parametrize(("name", "which"), [(name, which) for name in RIGHT for which in range(len(RIGHT[name]))])
def test_a_right_answer_is_accepted_however_it_is_written(name, which):
    finding = examine(name, RIGHT[name][which])
    assert finding.solved, finding


@pytest.mark.parametrize("name", NAMES)
def test_the_start_runs_and_is_told_what_is_wrong(name, capsys):
    title, start, checked, _ = parts(name)
    assert f"*{EXERCISES[name].minutes} minutes.*" in title.source
    check(name, run(start.source, name))
    said = capsys.readouterr().out
    assert "Not yet. " in said and said == "".join(out.text for out in checked.outputs)


@pytest.mark.parametrize("name", NAMES)
def test_the_folded_solution_is_accepted(name):
    titles = list(folded(name))
    assert titles[0].startswith("Hint 1: ") and titles[1].startswith("Hint 2: ") and titles[2:] == ["Solution"]
    (solution,) = blocks(folded(name)["Solution"])
    finding = examine(name, run(solution, name))
    assert finding.solved, finding


@pytest.mark.parametrize("name", NAMES)
def test_no_solution_shows_before_the_reader_asks(name):
    """No line of the solution that the start does not have stands in the exercise's open cells or hints."""
    title, start, checked, _ = parts(name)
    (solution,) = blocks(folded(name)["Solution"])
    given = {line.partition("  #")[0].strip() for line in start.source.splitlines()}
    new = [line.strip() for line in solution.splitlines() if line.strip() not in given | {""}]
    assert new, "the start is the solution"
    hints = [text for summary, text in folded(name).items() if summary != "Solution"]
    for line in new:
        for shown in (title.source, start.source, checked.source, *hints):
            assert line not in shown, line
    assert "<details open" not in parts(name)[3].source


def test_every_lesson_has_a_goal_that_no_run_has_not_reached():
    for notebook, aim in GOALS.items():
        assert aim.text and aim.reached([]) == "", notebook


def test_an_unknown_goal_is_named():
    with pytest.raises(ValueError, match="unknown goal '99': choose one of '"):
        goal("99")


def test_an_unknown_exercise_is_named():
    with pytest.raises(ValueError, match="unknown exercise '2.9': choose one of '"):
        examine("2.9", None)
