"""What CI runs: a weekly job of scripts that fail when anything in them does, at both ends of the promised versions."""

import importlib.metadata
import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if path.suffix == "")
WORKFLOW = ROOT / ".github/workflows/matrix.yml"
LOCK = ROOT / ".ci/locked.txt"
LOCKED = dict(line.split("==") for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
LOCKED = {canonicalize_name(name): Version(version) for name, version in LOCKED.items()}
ON_LINUX = {"python_version": "3.11", "python_full_version": "3.11.0", "sys_platform": "linux", "extra": ""}


@pytest.fixture(scope="module")
def project() -> dict:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read TOML; 3.11 and later check this")
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def workflow() -> dict:
    return yaml.load(WORKFLOW.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # else the key `on` is a yes


def ends() -> dict[str, tuple[str, str]]:
    """The Python and the torch of each environment that `.ci/matrix` knows."""
    script = (ROOT / ".ci/matrix").read_text(encoding="utf-8")
    return {name: pair for name, *pair in re.findall(r"^  (\w+)\) python=(\S+) torch=(\S+) ", script, re.MULTILINE)}


def test_the_matrix_runs_every_week_on_demand_and_when_a_version_moves(workflow):
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch", "push"}
    assert {"pyproject.toml", ".ci/**"} <= set(workflow["on"]["push"]["paths"])
    (schedule,) = workflow["on"]["schedule"]
    minute, hour, day, month, weekday = schedule["cron"].split()
    assert (day, month) == ("*", "*") and all(re.fullmatch(r"\d+", field) for field in (minute, hour, weekday))


def test_every_script_is_run_on_the_python_that_it_is_for(workflow):
    (job,) = workflow["jobs"].values()
    runs = {run["script"]: run["python"] for run in job["strategy"]["matrix"]["include"]}
    matrix = {f".ci/matrix {name}": python for name, (python, _) in ends().items()}
    assert runs == {".ci/run": "3.11", ".ci/audit": "3.11", **matrix}
    assert job["steps"][-1]["run"] == "${{ matrix.script }}"


def test_both_ends_of_the_promised_versions_are_run(project):
    (oldest, lowest), (newest, highest) = ends()["oldest"], ends()["newest"]
    torch = next(each.specifier for each in map(Requirement, project["dependencies"]) if each.name == "torch")
    bounds = {bound.operator: bound.version for bound in torch}
    assert bounds == {">=": lowest, "<": f"2.{Version(highest).minor + 1}"}
    assert project["requires-python"] == f">={oldest}" and newest in SpecifierSet(project["requires-python"])
    assert Version(newest) > Version(oldest)


@pytest.mark.parametrize("path", [WORKFLOW, *SCRIPTS], ids=lambda path: path.name)
def test_no_failure_is_hidden(path):
    content = path.read_text(encoding="utf-8")
    assert re.findall(r"continue-on-error|\|\| *(?:true|:)|always\(\)|failure\(\)|set \+e|--exitfirst", content) == []


def test_one_failing_job_stops_no_other_and_none_may_write(workflow):
    (job,) = workflow["jobs"].values()
    assert (
        job["strategy"]["fail-fast"] == "false" and "if" not in job and not any("if" in step for step in job["steps"])
    )
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in job


@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for bash, and Windows knows no executable bit")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_scripts_stop_at_the_first_failure(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash" and os.access(path, os.X_OK)
    assert next(line for line in lines if line and not line.startswith("#")) == "set -euo pipefail"


def test_the_lock_covers_what_the_tests_need_and_lies_within_the_ranges(project):
    wanted = [*map(Requirement, project["dependencies"] + project["optional-dependencies"]["test"])]
    wanted = [each for each in wanted if each.marker is None or each.marker.evaluate(ON_LINUX)]
    assert len(wanted) > 15
    assert [each.name for each in wanted if canonicalize_name(each.name) not in LOCKED] == []
    assert [str(each) for each in wanted if LOCKED[canonicalize_name(each.name)] not in each.specifier] == []
    assert {"pip", "uv", "pip-audit"} <= set(LOCKED), "the tools of the scripts"
    assert [str(version) for version in LOCKED.values() if version.local] == []


@pytest.mark.skipif(os.environ.get("PIP_CONSTRAINT") != str(LOCK), reason="not installed by .ci/run with the lock")
def test_nothing_is_installed_that_is_not_locked():
    installed = {canonicalize_name(each.name): Version(each.version) for each in importlib.metadata.distributions()}
    installed = {name: Version(version.public) for name, version in installed.items() if name != "metalib"}
    assert {name: version for name, version in installed.items() if LOCKED.get(name) != version} == {}


@pytest.mark.parametrize(
    "oldest, newest",
    [
        (
            "output 0 of AsStridedBackward0, is at version 2; expected version 1 instead.",
            "output 0 of AsStrided, is at version 2; expected version 1 instead.",
        ),
        ("PyTorch 2.7\n", "PyTorch 2.13\n"),
    ],
)
def test_texts_that_moved_between_versions_are_compared_by_what_stayed(oldest, newest):
    rules = (ROOT / "tests/nbval_sanitize.cfg").read_text(encoding="utf-8")
    for pattern, instead in re.findall(r"^regex: (.*)\nreplace: (.*)$", rules, re.MULTILINE):
        oldest, newest = (re.sub(pattern, instead, text) for text in (oldest, newest))
    assert oldest == newest
