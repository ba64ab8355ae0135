"""Every public name has an example in its docstring, and each example gives what stands below it.

Public is what `metalib.__all__` names, what the notebooks import and what the reference page lists besides. The example
of a dict or a tuple, which has no docstring, stands in that of its file; so may others that belong together.
"""

import ast
import doctest
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
import torch

import metalib

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^\.\. auto(?!module)\w+:: (.+)$", REFERENCE, flags=re.MULTILINE)
FILES = re.findall(r"^\.\. automodule:: (.+)$", REFERENCE, flags=re.MULTILINE)
EXPORTED = [f"metalib.{name}" for name in metalib.__all__]


@cache
def imported():
    """The names that the notebooks import from metalib."""
    cells = [cell for path in (ROOT / "notebooks").glob("*.ipynb") for cell in nbformat.read(path, as_version=4).cells]
    trees = [ast.parse(cell.source) for cell in cells if cell.cell_type == "code"]
    lines = [line for tree in trees for line in ast.walk(tree) if isinstance(line, ast.ImportFrom)]
    return sorted({f"{line.module}.{name.name}" for line in lines for name in line.names if "metalib" in line.module})


def found(name):
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def example(docstring, name):
    return doctest.DocTestParser().get_doctest(docstring, {}, name, None, None)


def uses(docstring, name):
    return any(re.search(rf"\b{name}\b", line.source) for line in example(docstring, name).examples)


def test_what_metalib_exports_and_what_the_notebooks_import_is_in_the_reference():
    assert len(LISTED) > 25 and len(imported()) > 25
    known = [id(found(name)) for name in LISTED]
    for name in [*EXPORTED, *imported()]:
        module, _, attribute = name.rpartition(".")
        in_its_file = module in FILES and uses(import_module(module).__doc__, attribute)
        assert id(found(name)) in known or in_its_file, name


@pytest.mark.parametrize("name", LISTED)
def test_it_has_an_example(name):
    module, _, attribute = name.rpartition(".")
    in_its_file = module in FILES and uses(import_module(module).__doc__, attribute)
    assert in_its_file or ">>> " in found(name).__doc__


@pytest.mark.parametrize("name", [*LISTED, *FILES])
def test_its_example_runs_by_itself(name, tmp_path, monkeypatch):
    """With no name but those that it imports, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    test = example((import_module(name) if name in FILES else found(name)).__doc__, name)
    assert test.examples or name not in FILES
    assert sum(line.source.count("\n") for line in test.examples) <= 9, "a short example"
    said = []
    with torch.random.fork_rng():
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)
