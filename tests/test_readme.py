"""The README tells the truth: its commands, its example, its tables and its links."""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES = re.findall(r"`(\w+(?:\.py|/))`", README[README.index("## The module") : README.index("## Tests")])
SOURCES = sorted((ROOT / "metalib").rglob("*.py"))


def test_the_example_prints_what_stands_below_it():
    code, output = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == output


def test_the_engines_example_prints_what_stands_below_it():
    """But for the last digit, which may differ between processors."""
    code, output = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL)[2]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), torch.random.fork_rng():
        exec(code, {})
    (found, *rest), (expected, *lines) = printed.getvalue().splitlines(), output.splitlines()
    numbers = [float(re.search(r"= (\S+),", line)[1]) for line in (found, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3)
    assert found.split(",")[1] == expected.split(",")[1] and rest == lines


def test_the_doctors_example_prints_what_stands_below_it(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, flags=re.DOTALL)
    (loop, _), (doctor, output) = blocks[:2]
    (tmp_path / "loop.py").write_text(loop[: loop.index("print(")] + doctor, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    printed = subprocess.check_output(
        [sys.executable, "loop.py"], cwd=tmp_path, env=environment, text=True, encoding="utf-8"
    )
    assert printed == output


def test_the_benchmarks_numbers_are_those_that_were_recorded():
    results = json.loads((ROOT / "tests/benchmarks/results/results.json").read_text(encoding="utf-8"))
    section = README[README.index("## How fast") : README.index("## The module")]
    head, _, *rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    places = [re.fullmatch(r"(.*), K = (\d+)", cell).groups() for cell in head[1:]]
    checked = 0
    for name, *cells in (row for row in rows if len(row) == len(head)):
        who = "plain" if name.startswith("plain") else name.strip("*")
        for (task, steps), cell in zip(places, cells, strict=True):
            assert float(cell) == pytest.approx(results["times"][task][steps][who]["ratio"][1], rel=0.05)
            checked += 1
    assert checked == 7 * 9


def test_every_link_and_picture_is_there():
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", README) if not target.startswith("https://")]
    assert len(targets) >= 8
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_notebook_is_in_the_map():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{path.name})" in README


def test_both_commands_start_with_one_line_each():
    first = "notebooks/00-a-learning-rate-can-be-learned.ipynb"
    assert f"\npip install -e . && jupyter lab --LabApp.default_url=/lab/tree/{first}\n" in README
    assert (ROOT / first).exists()
    assert '\npip install -e ".[test]" && pytest\n' in README


@pytest.mark.skipif(sys.platform == "win32", reason=".ci/run is a bash script")
def test_ci_takes_its_test_command_from_the_readme():
    script = (ROOT / ".ci/run").read_text()
    (pattern,) = re.findall(r"grep -m 1 -x '(.*)' README.md", script)
    found = subprocess.check_output(["grep", "-m", "1", "-x", pattern, "README.md"], cwd=ROOT, text=True)
    assert found == 'pip install -e ".[test]" && pytest\n'


def entry(path):
    """The list's entry for a file: its own name, or the name of its folder."""
    return path.name if path.parent.name == "metalib" else f"{path.parent.name}/"


def test_the_list_of_files_is_complete_and_in_reading_order():
    """A file imports only files above it."""
    assert sorted(FILES) == sorted({entry(path) for path in SOURCES} - {"__init__.py"})
    for path in SOURCES:
        if path == ROOT / "metalib" / "__init__.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        names = {module.split(".")[1] for module in imported if module.startswith("metalib.")}
        place = FILES.index(entry(path))
        above = {name.removesuffix(".py").removesuffix("/") for name in FILES[:place]}
        own = {path.parent.name} if path.parent.name != "metalib" else set()
        assert names <= above | own, path.name


def test_the_packages_own_list_is_the_same():
    import metalib

    listed = re.findall(r"\w+", metalib.__doc__[metalib.__doc__.index("order:") :])[1:]
    assert listed == [name.removesuffix(".py").removesuffix("/") for name in FILES]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_files_stay_small_enough_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 200


def test_importing_metalib_does_no_work():
    """No torch, no Matplotlib, no widgets until a file is asked for."""
    code = "import sys, metalib; print(sorted({'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_no_private_torch_api_is_used():
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            # _version is named in PyTorch's notes on autograd and has no other name; _replace is a named tuple's
            if private and node.attr not in ("_version", "_replace"):
                assert ast.unparse(node.value) in ("self", "super()"), f"{path.name}: {node.attr}"
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("torch"):
                assert not any(part.startswith("_") for part in node.module.split("."))


def test_the_sweeps_example_runs():
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL) if "sweep(" in block]
    scope, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code.replace("Settings()", "Settings(outer_steps=3)"), scope)
    assert len(scope["rows"]) == 48 and "first_order: " in printed.getvalue()
