"""Writes the public address of this repository to where readers need it. Whoever hosts a copy runs this once.

python binder/host.py https://github.com/you/metalib     says where the repository is, and writes it everywhere
python binder/host.py                                    writes it again, after a notebook was added

The address is kept in one place, pyproject.toml, as `Repository`. From there it goes into the first cell of each
notebook, which installs metalib on Colab, and into the badges of both READMEs. The reading edition links to it, too.
"""

import argparse
import re
from pathlib import Path
from urllib.parse import quote

import nbformat
from link import GITHUB, binder_link  # beside this file

ROOT = Path(__file__).resolve().parents[1]
CELL_ID = "install-metalib"
FIRST = "00-a-learning-rate-can-be-learned.ipynb"
# The README, the line that its badges follow, their names, and the notebook that Colab opens.
READMES = {
    "README.md": ("English · ", "Open on Binder", "Open in Colab", f"notebooks/{FIRST}"),
    "README.zh-CN.md": ("[English]", "在 Binder 上打开", "在 Colab 中打开", f"notebooks/zh/{FIRST}"),
}
NOT_THERE = """\
from importlib.util import find_spec

if find_spec("metalib") is None:  # Where metalib is installed, this cell does nothing.
    raise ImportError("run `pip install -e .` in the repository's folder, then restart the kernel")"""
INSTALL = """\
import sys
from importlib.util import find_spec
from subprocess import run

if find_spec("metalib") is None:  # as on Colab. Where metalib is installed, this cell does nothing.
    source = "git+{address}"
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", source], check=True)"""


def stated(root: Path = ROOT) -> str:
    """The address that pyproject.toml states, or "" where nobody has hosted this copy yet."""
    found = re.search(r'^Repository = "(.*)"$', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def first_cell(address: str) -> str:
    """The code right below each notebook's title. With --no-deps, since Colab brings its own PyTorch and widgets."""
    return INSTALL.format(address=address) if address else NOT_THERE


def badges(address: str, on_binder: str, in_colab: str, notebook: str) -> str:
    """The line of badges in a README. Colab opens what is on GitHub only."""
    if not address:
        return ""
    line = f"[![{on_binder}](https://mybinder.org/badge_logo.svg)]({binder_link(address, path=notebook)})"
    host, _, name = address.removeprefix("https://").partition("/")
    if host in GITHUB:
        colab = f"https://colab.research.google.com/github/{name}/blob/main/{quote(notebook)}"
        line += f" [![{in_colab}](https://colab.research.google.com/assets/colab-badge.svg)]({colab})"
    return line


def _state(root: Path, address: str) -> None:
    path = root / "pyproject.toml"
    text = re.sub(r'\n\[project\.urls\]\nRepository = ".*"\n', "", path.read_text(encoding="utf-8"))
    if address:
        place = "\n[project.optional-dependencies]\n"
        text = text.replace(place, f'\n[project.urls]\nRepository = "{address}"\n{place}', 1)
    path.write_text(text, encoding="utf-8")


def _write_notebooks(root: Path, address: str) -> None:
    for path in sorted((root / "notebooks").rglob("[0-9]*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        cells = [cell for cell in notebook.cells if cell.id == CELL_ID]
        if not cells:
            cells = [nbformat.v4.new_code_cell(id=CELL_ID)]
            notebook.cells[1:1] = cells
        cells[0].source = first_cell(address)
        nbformat.write(notebook, path)


def _write_readmes(root: Path, address: str) -> None:
    for name, (line_before, *names) in READMES.items():
        path = root / name
        text = re.sub(r"\n\[!\[[^\n]*mybinder\.org[^\n]*\n", "", path.read_text(encoding="utf-8"))
        line = badges(address, *names)
        if line:
            above = re.search(rf"^{re.escape(line_before)}.*\n", text, re.MULTILINE).end()
            text = f"{text[:above]}\n{line}\n{text[above:]}"
        path.write_text(text, encoding="utf-8")


def host(address: str, root: Path = ROOT) -> None:
    """State the address, "" for none, and write it everywhere. What stood there before is replaced."""
    address = address.strip().rstrip("/").removesuffix(".git")
    if address and not re.fullmatch(r"https://[^\s\"'@]+/[^\s\"'@]+", address):
        raise ValueError(f"{address!r} is no public address: it must look like https://github.com/OWNER/NAME")
    if address:
        binder_link(address)  # a ValueError for what Binder cannot reach, before anything is written
    _state(root, address)
    _write_notebooks(root, address)
    _write_readmes(root, address)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the repository's public address to where readers need it.")
    parser.add_argument("address", nargs="?", default=stated(), help="without it, the one in pyproject.toml")
    address = parser.parse_args().address
    try:
        host(address)
    except ValueError as problem:
        raise SystemExit(f"Nothing was written: {problem}.") from None
    print(f"written: {address or 'no address, since pyproject.toml states none'}")


if __name__ == "__main__":
    main()
