"""What can be known about Binder's image and the conda environment without Docker, conda or a network.

Not known from here: that conda-forge can solve the list, and that mybinder.org starts the image.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("binder/postBuild", "binder/start")
PIP_NAMES = {"pytorch": "torch", "pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}  # where conda has another
posix = pytest.mark.skipif(
    sys.platform == "win32", reason="Binder's scripts and repo2docker run on Linux and macOS only"
)


def unable(what: str) -> None:
    """Skip on a reader's machine; fail in CI, where nobody would notice the skip."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def need(requirement: str) -> None:
    wanted = Requirement(requirement)
    try:
        if importlib.metadata.version(wanted.name) in wanted.specifier:
            return
    except importlib.metadata.PackageNotFoundError:
        pass
    unable(f"this test needs {requirement}: pip install '{requirement}'")


def git(*arguments: str) -> str:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        unable("this test asks git what Binder will see: install git, and run it in a clone")
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def environment(path: str) -> dict:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def packages(path: str) -> dict[str, SpecifierSet]:
    """What a conda file asks for, under pip's names. Conda knows more forms; one that pip lacks is an error here."""
    found = {}
    for dependency in environment(path)["dependencies"]:
        name, versions = re.fullmatch(r"([a-z0-9-]+)(.*)", dependency).groups()
        if re.match(r"=\d", versions):  # conda's single = admits every release of the series
            versions = f"={versions}.*"
        found[PIP_NAMES.get(name, name)] = SpecifierSet(versions)
    return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The files that a clone would have, with today's changes: what git ignores here, Binder will not see."""
    folder = tmp_path_factory.mktemp("binder") / "clone"
    for name in filter(None, git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def test_binder_has_the_same_list_without_the_tests_tools_and_with_the_smallest_pytorch():
    here, on_binder = environment("environment.yml"), environment("binder/environment.yml")
    expected = []
    for line in here["dependencies"]:
        if re.match(r"pytorch(?=[<>=])", line):
            expected += [line.replace("pytorch", "pytorch-cpu"), "nomkl"]
        elif not re.match(r"(nbval|nbclient|pytest|pytest-xdist)(?=[<>=])", line):
            expected.append(line)
    assert len(expected) == len(here["dependencies"]) - 3
    assert on_binder == {**here, "dependencies": expected}


def test_binder_has_one_folder_of_real_files_and_no_file_that_it_would_ignore():
    for name in ("environment.yml", "postBuild", "start", "link.py"):
        path = ROOT / "binder" / name
        assert path.is_file() and not path.is_symlink(), name
    assert not (ROOT / "binder").is_symlink()
    assert not (ROOT / ".binder").exists(), "repo2docker refuses a repository with both folders"
    assert not (ROOT / "binder/requirements.txt").exists(), "repo2docker ignores it beside an environment.yml"


@pytest.mark.parametrize("path", ["environment.yml", "binder/environment.yml"])
def test_the_lines_are_of_the_forms_that_binder_and_pip_both_know(path):
    lines = environment(path)["dependencies"]
    assert all(isinstance(line, str) for line in lines), "a `pip:` section: two installers would share numpy"
    assert len(lines) == len(packages(path)), "a package is listed twice"
    pins = [line for line in lines if re.match(r"python\b(?!-)", line)]
    assert len(pins) == 1 and re.fullmatch(r"python=3\.\d+", pins[0]), f"repo2docker would not read {pins}"
    assert environment(path)["channels"] == ["conda-forge", "nodefaults"]


@pytest.mark.parametrize("path", ["environment.yml", "binder/environment.yml"])
def test_every_range_admits_the_version_that_these_tests_run_on(path):
    ranges = {name: versions for name, versions in packages(path).items() if versions and name != "python"}
    running = {name: importlib.metadata.version(name) for name in ranges}
    refused = [f"{name}{ranges[name]}: {running[name]}" for name in ranges if running[name] not in ranges[name]]
    assert len(ranges) > 5 and refused == []


def test_the_environment_promises_what_pyproject_does():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read TOML; 3.11 and later check this")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    def ranges(lines: list[str]) -> dict[str, SpecifierSet]:
        return {canonicalize_name(each.name): each.specifier for each in map(Requirement, lines)}

    required = ranges(pyproject["build-system"]["requires"] + pyproject["project"]["dependencies"])
    for_tests = ranges(pyproject["project"]["optional-dependencies"]["test"])
    asked = packages("environment.yml")
    series = next(iter(asked.pop("python"))).version.removesuffix(".*")
    assert series in SpecifierSet(pyproject["project"]["requires-python"])
    asked.pop("pip")
    assert asked == {**{name: for_tests[name] for name in for_tests if name in asked}, **required}

    assert {"nbval", "nbclient", "pytest"} <= set(asked)
    comments = " ".join(re.findall(r"^#.*", (ROOT / "environment.yml").read_text(encoding="utf-8"), re.MULTILINE))
    unexplained = [name for name in for_tests if name not in asked and not re.search(rf"\b{name}\b", comments)]
    assert unexplained == [], "environment.yml neither asks for these nor names them as left out"


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_run_as_scripts(script):
    content = (ROOT / script).read_bytes()
    assert content.startswith(b"#!/usr/bin/env bash\n") and b"\r" not in content
    mode = git("ls-files", "--stage", script)[:6]  # empty until it is added
    assert mode == "100755" if mode else os.access(ROOT / script, os.X_OK)


@posix
@pytest.mark.parametrize("script", SCRIPTS)
def test_bash_can_read_the_scripts(script):
    checked = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@posix
def test_start_gives_its_command_one_thread_and_every_argument():
    code = "import os, sys, torch; print(os.environ['OMP_NUM_THREADS'], torch.get_num_threads(), sys.argv[1:])"
    other = {**os.environ, "OMP_NUM_THREADS": "2"}
    command = ["bash", ROOT / "binder/start", sys.executable, "-c", code, "two words", ""]
    assert subprocess.check_output(command, env=other, text=True).strip() == "1 1 ['two words', '']"


@posix
def test_repo2docker_builds_from_these_files_and_no_others(clone, monkeypatch):
    need("jupyter-repo2docker")
    from repo2docker.app import Repo2Docker

    monkeypatch.chdir(clone)
    app = Repo2Docker()
    candidates = (pack(base_image=app.base_image) for pack in app.buildpacks)
    pack = next(candidate for candidate in candidates if candidate.detect())
    assert type(pack).__name__ == "CondaBuildPack"
    assert pack.python_version == "3.12"

    pack.platform = "linux/amd64"
    dockerfile = pack.render()
    named = set(re.findall(r"\bbinder/[\w.-]+", dockerfile)) | set(re.findall(r" src/(\S+) ", dockerfile))
    assert named == {"binder/environment.yml", "binder/postBuild", "binder/start"}
    assert [name for name in named if not (clone / name).is_file()] == []
    # The environment before the rest: else each commit solves and downloads it anew.
    assert (
        dockerfile.index("env update") < dockerfile.index(" src/ ${REPO_DIR}/") < dockerfile.index("binder/postBuild")
    )


@posix
def test_postbuild_installs_metalib_without_a_network_warms_it_and_quiets_jupyterlab(clone, tmp_path):
    """Run for real, in a venv that sees this environment's packages but not the metalib that is installed in it."""
    need("pip")
    need("setuptools>=70.1")  # older ones need `wheel` too, and a new venv of Python 3.10 or 3.11 has an older one
    venv.create(tmp_path / "v", symlinks=True)
    (own,) = (tmp_path / "v/lib").glob("python*/site-packages")
    outer = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    (own / "outer.pth").write_text("\n".join(outer), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "v/bin"), os.environ["PATH"]])
    # No index: pip may not fetch. Ignore installed: pip may not think of removing this environment's own metalib.
    offline = {**os.environ, "PATH": path, "PIP_NO_INDEX": "1", "PIP_IGNORE_INSTALLED": "1"}
    offline["MPLCONFIGDIR"] = str(tmp_path / "fonts")
    build = subprocess.run(["./binder/postBuild"], cwd=clone, env=offline, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout[-2000:] + build.stderr[-2000:]

    def ask(code: str) -> str:
        return subprocess.check_output(["python", "-I", "-c", code], cwd=tmp_path, env=offline, text=True).strip()

    assert Path(ask("import metalib; print(metalib.__file__)")).is_relative_to(clone)
    from jupyterlab.commands import get_app_dir
    from jupyterlab_server.settings_utils import get_settings

    schemas = os.path.join(get_app_dir(), "schemas")
    written, of_a_user = str(tmp_path / "v/share/jupyter/lab/settings"), str(tmp_path / "none")

    def defaults(plugin: str) -> dict:
        shown, warnings = get_settings(written, schemas, of_a_user, schema_name=f"@jupyterlab/{plugin}")
        assert not any(warnings), warnings
        return {name: entry.get("default") for name, entry in shown["schema"]["properties"].items()}

    quiet = defaults("apputils-extension:notification")
    assert (quiet["fetchNews"], quiet["checkForUpdates"]) == ("false", False)
    contents = defaults("toc-extension:registry")
    assert (contents["numberHeaders"], contents["includeOutput"], contents["syncCollapseState"]) == (False, False, True)

    # Nothing is left for the first cell to do.
    assert list((tmp_path / "fonts").glob("fontlist-*.json"))
    sources = sorted((clone / "metalib").rglob("*.py"))
    assert [path for path in sources if not Path(importlib.util.cache_from_source(path)).is_file()] == []


@pytest.fixture(scope="module")
def link():
    spec = importlib.util.spec_from_file_location("link", ROOT / "binder/link.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GITHUB, GITLAB, ELSEWHERE = "gh/ada/rates", "gl/group%2Fsub%2Frates", "git/https%3A%2F%2Fgit.example.org%2Fada%2Frates"


@pytest.mark.parametrize(
    "remote, source",
    [
        ("https://github.com/ada/rates.git", GITHUB),
        ("https://github.com/ada/rates", GITHUB),
        ("https://github.com/ada/rates/\n", GITHUB),
        ("https://GitHub.com/ada/rates", GITHUB),
        ("https://www.github.com/ada/rates", GITHUB),
        ("https://ada:token@github.com/ada/rates.git", GITHUB),
        ("git@github.com:ada/rates.git", GITHUB),
        ("git@github.com:ada/rates", GITHUB),
        ("github.com:/ada/rates.git/", GITHUB),
        ("ssh://git@github.com/ada/rates.git", GITHUB),
        ("ssh://git@ssh.github.com:443/ada/rates.git", GITHUB),
        ("git://github.com/ada/rates.git", GITHUB),
        ("https://github.com/ada/rates.js", "gh/ada/rates.js"),
        ("https://gitlab.com/group/sub/rates.git", GITLAB),
        ("git@gitlab.com:group/sub/rates", GITLAB),
        ("ssh://git@altssh.gitlab.com:443/group/sub/rates.git", GITLAB),
        ("https://gitlab.com/ada/rates", "gl/ada%2Frates"),
        ("https://git.example.org/ada/rates", ELSEWHERE),
        ("https://ada:p@ss@git.example.org/ada/rates", ELSEWHERE),
        ("git@git.example.org:ada/rates", ELSEWHERE),
        ("ssh://git@git.example.org:2222/ada/rates", ELSEWHERE),
        ("https://git.example.org/ada/rates.git", ELSEWHERE + ".git"),
        ("http://git.example.org:3000/rates", "git/http%3A%2F%2Fgit.example.org%3A3000%2Frates"),
        ("https://github.com.example.org/ada/rates", "git/https%3A%2F%2Fgithub.com.example.org%2Fada%2Frates"),
    ],
)
def test_a_link_for_each_form_of_remote(link, remote, source):
    first = "notebooks%2F00-a-learning-rate-can-be-learned.ipynb"
    assert link.binder_link(remote) == f"https://mybinder.org/v2/{source}/HEAD?labpath={first}"


def test_a_link_to_another_branch_and_notebook(link):
    made = link.binder_link("git@github.com:ada/rates", ref="fix/bug #1", path="notebooks/02 é.ipynb")
    assert made == "https://mybinder.org/v2/gh/ada/rates/fix/bug%20%231?labpath=notebooks%2F02%20%C3%A9.ipynb"


def test_the_link_opens_a_notebook_that_is_there(link):
    assert (ROOT / link.FIRST_NOTEBOOK).is_file()


@pytest.mark.parametrize(
    "remote, accepted",
    [
        ("", "https://HOST/"),
        ("/srv/rates.git", "https://HOST/"),
        ("../rates", "https://HOST/"),
        (r"C:\rates", "https://HOST/"),
        ("C:/rates", "https://HOST/"),
        ("file:///srv/rates.git", "https://HOST/"),
        ("https://localhost:3000/ada/rates", "https://HOST/"),
        ("git@work:ada/rates.git", "https://HOST/"),
        ("https://github.com/rates", "https://github.com/OWNER/NAME"),
        ("https://github.com/ada/rates/tree/main", "https://github.com/OWNER/NAME"),
        ("https://gitlab.com/rates.git", "https://gitlab.com/GROUP/NAME"),
    ],
)
def test_a_remote_that_binder_cannot_reach_is_named_with_what_would_do(link, remote, accepted):
    with pytest.raises(ValueError) as caught:
        link.binder_link(remote)
    message = str(caught.value)
    assert repr(remote) in message and accepted in message and "git remote set-url origin" in message


def test_a_token_is_not_repeated_in_an_error(link):
    with pytest.raises(ValueError, match="'https://github.com/rates'"):
        link.binder_link("https://ada:token@github.com/rates")


def test_the_program_prints_the_link_or_one_sentence(tmp_path):
    (tmp_path / "binder").mkdir()
    program = shutil.copy2(ROOT / "binder/link.py", tmp_path / "binder")

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, cwd=ROOT)
        return done.returncode, done.stdout, done.stderr

    git("init", "-q", str(tmp_path))
    status, printed, said = run()
    assert (status, printed, said.count("\n")) == (1, "", 1)
    assert said.startswith("No link: ") and "no remote named origin" in said and "git remote add origin" in said

    git("-C", str(tmp_path), "remote", "add", "origin", "git@github.com:ada/rates.git")
    status, printed, said = run("main")
    assert (status, said) == (0, "")
    assert printed.startswith("https://mybinder.org/v2/gh/ada/rates/main?labpath=notebooks%2F00-")

    git("-C", str(tmp_path), "remote", "set-url", "origin", "../elsewhere")
    status, printed, said = run()
    assert (status, printed, said.count("\n")) == (1, "", 1) and "'../elsewhere'" in said


@pytest.fixture
def hosting(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "binder")
    return importlib.import_module("host")


@pytest.fixture
def copy(tmp_path) -> Path:
    """What states the address of the repository, as when nobody has hosted it yet."""
    for name in ("pyproject.toml", "README.md", "README.zh-CN.md"):
        shutil.copy2(ROOT / name, tmp_path)
    for name in ("00-a-learning-rate-can-be-learned.ipynb", "zh/00-a-learning-rate-can-be-learned.ipynb"):
        (tmp_path / "notebooks" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "notebooks" / name, tmp_path / "notebooks" / name)
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.*")
        if path.is_file()
    }


def test_one_command_states_the_address_everywhere_and_takes_it_back(hosting, copy):
    hosting.host("", copy)
    nowhere = contents(copy)
    assert hosting.stated(copy) == "" and not [text for text in nowhere.values() if "badge" in text]

    hosting.host("https://github.com/ada/rates.git/", copy)
    here = contents(copy)
    assert hosting.stated(copy) == "https://github.com/ada/rates"
    assert [name for name in here if here[name] == nowhere[name]] == []
    assert "git+https://github.com/ada/rates" in here["notebooks/00-a-learning-rate-can-be-learned.ipynb"]
    binder = f"https://mybinder.org/v2/{GITHUB}/HEAD?labpath=notebooks%2F00-a-learning-rate-can-be-learned.ipynb"
    colab = "https://colab.research.google.com/github/ada/rates/blob/main/notebooks/00-"
    assert f"({binder})" in here["README.md"] and f"({colab}" in here["README.md"]
    assert "/blob/main/notebooks/zh/00-" in here["README.zh-CN.md"]
    lines = here["README.md"].splitlines()
    assert lines[2].startswith("English · ") and lines[4].startswith("[![Open on Binder]") and lines[5] == ""
    hosting.host(hosting.stated(copy), copy)
    assert contents(copy) == here

    hosting.host("https://git.example.org/ada/rates", copy)
    assert "colab" not in contents(copy)["README.md"], "Colab opens what is on GitHub only"
    hosting.host("", copy)
    assert contents(copy) == nowhere


@pytest.mark.parametrize("address", ["github.com/ada/rates", "git@github.com:ada/rates", "https://github.com/rates"])
def test_an_address_that_readers_could_not_use_is_not_written(hosting, copy, address):
    before = contents(copy)
    with pytest.raises(ValueError, match="https://github.com/OWNER/NAME"):
        hosting.host(address, copy)
    assert contents(copy) == before


def test_the_badges_lead_to_the_address_that_pyproject_states(hosting):
    for name, (_, *names) in hosting.READMES.items():
        line = hosting.badges(hosting.stated(), *names)
        assert line in (ROOT / name).read_text(encoding="utf-8")
