"""What nbval does not look at: outputs are there, in order and clean, links lead somewhere, cells are short.

nbval itself runs every cell again and compares what it prints; see `addopts` in pyproject.toml.
"""

import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from markdown_it import MarkdownIt

from metalib.report import fold

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.name for path in PATHS]
LESSONS = [name[:2] for name in NAMES[1:]]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def read(name):
    return nbformat.read(ROOT / "notebooks" / name, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def printed(notebook):
    return "".join(out.text for cell in code(notebook) for out in cell.outputs if out.output_type == "stream")


def anchors(name):
    """The names that JupyterLab gives to headings: their text with hyphens for blanks."""
    headings = re.findall(r"^#+ (.*)$", prose(read(name)), flags=re.MULTILINE)
    return {heading.replace("`", "").strip().replace(" ", "-") for heading in headings}


def test_the_notebooks_are_there():
    assert len(NAMES) >= 12 and [name[:2] for name in NAMES] == [f"{number:02}" for number in range(len(NAMES))]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid_and_was_run_top_to_bottom_in_a_clean_kernel(name):
    """A notebook that was never run would pass nbval, which would then compare nothing."""
    notebook = read(name)
    nbformat.validate(notebook)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata, "stored widget state goes stale and shadows the picture"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@pytest.fixture
def hosting(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "binder")
    return importlib.import_module("host")


@pytest.mark.parametrize(
    "path",
    [*PATHS, *sorted((ROOT / "notebooks/zh").glob("*.ipynb"))],
    ids=lambda path: f"{path.parent.name}/{path.stem[:2]}",
)
def test_the_cell_below_the_title_installs_metalib_where_it_is_missing_and_does_nothing_here(path, hosting):
    """The same cell everywhere; `python binder/host.py` writes it."""
    title, cell = nbformat.read(path, as_version=4).cells[:2]
    assert title.source.startswith("# ") and cell.id == hosting.CELL_ID
    assert cell.source == hosting.first_cell(hosting.stated())
    assert cell.outputs == []


def test_where_metalib_is_missing_the_first_cell_installs_it_or_says_how(hosting, monkeypatch):
    started = []
    monkeypatch.setattr("subprocess.run", lambda *arguments, **options: started.append((*arguments, options)))
    for address in ("", "https://github.com/ada/rates"):
        exec(hosting.first_cell(address), {})
    assert started == []

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"run `pip install -e \.` in the repository's folder"):
        exec(hosting.first_cell(""), {})
    assert started == []
    exec(hosting.first_cell("https://github.com/ada/rates"), {})
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "git+https://github.com/ada/rates"]
    assert started == [(pip, {"check": True})]


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_failed_and_nothing_was_written_to_stderr(name):
    outputs = [out for cell in code(read(name)) for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    assert not [out.text for out in outputs if out.get("name") == "stderr"]


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_excused_from_the_comparison(name):
    for cell in read(name).cells:
        assert not cell.metadata.get("tags"), cell.source
        assert "NBVAL" not in cell.source


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_short_and_hold_no_magics(name):
    for cell in code(read(name)):
        assert len(cell.source.splitlines()) <= 20, cell.source
        assert not re.search(r"^\s*[%!]", cell.source, flags=re.MULTILINE), cell.source


@pytest.mark.parametrize("name", NAMES)
def test_outputs_hold_no_path_of_a_machine_and_are_not_huge(name):
    text = json.dumps([cell.outputs for cell in code(read(name))])
    for out in re.findall(r'"image/png": "[^"]*"', text):
        text = text.replace(out, "")
    assert not re.search(r"(?<![\w.])/(root|tmp|home|work|Users|mnt)/|[A-Z]:\\\\", text)
    assert (ROOT / "notebooks" / name).stat().st_size < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name):
    for target in LINK.findall(prose(read(name))):
        if target.startswith("https://"):
            continue
        file, _, anchor = unquote(target).partition("#")
        assert not file or (ROOT / "notebooks" / file).is_file(), target
        assert not anchor or anchor in anchors(file or name), f"{target}: {sorted(anchors(file or name))}"


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_followed_by_its_text_and_carries_it_as_alternative_text(name):
    figures = 0
    for cell in code(read(name)):
        for index, out in enumerate(cell.outputs):
            if "image/png" in out.get("data", {}) and "application/vnd.jupyter.widget-view+json" not in out.data:
                figures += 1
                text = "".join(o.text for o in cell.outputs[index + 1 :] if o.output_type == "stream")
                alternative = out.metadata["image/png"]["alt"]
                assert alternative and fold(alternative) in text
    assert figures >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if name[:2] in LESSONS])
def test_a_lesson_has_its_parts(name):
    notebook = read(name)
    text, source = prose(notebook), "\n".join(cell.source for cell in code(notebook))
    for heading in ("## Predict", "## Play", "## What would have fooled you"):
        assert heading in text, heading
    assert "**Goal:**" in text and re.search(r"^predictions? = ", source, flags=re.MULTILINE)
    assert re.search(r"lab = (TrajectoryLab|Workbench)\(\s*goal=", source) and "show(lab.picture())" in source
    assert re.match(r"# \d\d · .+", text), "the title is the claim"


@pytest.mark.parametrize("name", NAMES)
def test_the_lab_shows_a_picture_where_there_is_no_kernel(name):
    outputs = [out.get("data", {}) for cell in code(read(name)) for out in cell.outputs]
    views = [data for data in outputs if "application/vnd.jupyter.widget-view+json" in data]
    assert views and all(view["image/png"] for view in views)


# What each notebook must really have printed, a line each: the errors and the numbers that its prose is about.
CLAIMS = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in sorted((HERE / "claims").glob("*.txt"))}


def test_every_notebook_has_its_claims():
    assert list(CLAIMS) == [name[:2] for name in NAMES]


def flat(text):
    """Without the folds of long lines."""
    return " ".join(text.split())


@pytest.mark.parametrize("start", CLAIMS)
def test_it_shows_what_its_prose_is_about(start):
    assert len(CLAIMS[start]) >= 3
    notebook = read(next(name for name in NAMES if name.startswith(start)))
    for line in CLAIMS[start]:
        assert line.strip() and flat(line) in flat(printed(notebook)), line


@pytest.mark.parametrize("name", NAMES)
def test_the_minutes_that_it_states_are_about_those_that_it_takes(name):
    """Loosely: 200 words and 15 lines of code a minute; its exercises state their own minutes."""
    minutes, seconds = map(
        int, re.search(r"^\*(\d+) minutes to read, (\d+) seconds to run", prose(read(name)), re.M).groups()
    )
    assert 8 <= minutes <= (25 if name.startswith("10") else 18) and seconds <= 20  # ten loops take longer
    words = lines = skip = 0
    for cell in read(name).cells:
        skip = 4 if cell.source.startswith("## Exercise") else max(skip - 1, 0)
        if not skip and cell.cell_type == "markdown":
            words += len(cell.source.split())
        elif not skip:
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    assert 0.7 < (words / 200 + lines / 15) / minutes < 1.4, (words, lines)


NOT_TEXT = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\]\([^)]*\)|\[pytorch#\d+|^# .*?$|^\*\d+ minutes.*?\*|^## Exercise [\d.]+",
    re.DOTALL | re.M,
)
NUMBER = re.compile(r"(?<![\w.\-^])(\d[\d,]*\.\d+|\d[\d,]*(?=%)|\d{3,})")


def spoken_numbers(text):
    """The numbers in prose that somebody must have measured: decimals, percentages and large ones.

    A paragraph that says **recorded** names what was measured elsewhere, and the table below it belongs to it.
    """
    recorded = False
    for block in re.split(r"\n\s*\n", NOT_TEXT.sub("", text)):
        recorded = bool(re.search(r"\*\*[^*]*recorded", block, re.I)) or (recorded and block.lstrip().startswith("|"))
        if not recorded:
            yield from ((number, block) for number in NUMBER.findall(block.replace("$", "")))


def everything_shown(name):
    notebook = read(name)
    outputs = [out for cell in code(notebook) for out in cell.outputs]
    shown = [out.get("text", "") + str(out.get("data", {}).get("text/plain", "")) for out in outputs]
    return "".join([*shown, *(cell.source for cell in code(notebook))]).replace(",", "")


@pytest.mark.parametrize("name", NAMES)
def test_every_number_in_prose_is_printed_by_a_cell(name):
    """In this notebook, or in the one that the paragraph names. An exercise's task sets numbers, it reports none."""
    cells = [cell.source for cell in read(name).cells if cell.cell_type == "markdown"]
    told = "\n\n".join(source for source in cells if not source.startswith("## Exercise"))
    for number, block in spoken_numbers(told):
        others = [other for other in NAMES if re.search(rf"(notebook |\[){other[:2]}\b", block)]
        whole = re.compile(rf"(?<![\d.]){re.escape(number.replace(',', ''))}(?!\.?\d)")
        assert any(whole.search(everything_shown(place)) for place in [name, *others]), (number, block)


def test_the_grid_in_notebook_05_is_the_table_that_the_unit_tests_hold():
    from test_versions import EXPECTED

    text = printed(read(next(name for name in NAMES if name.startswith("05"))))
    for version, (linear, network, _) in EXPECTED.items():
        assert f"{version}: {', '.join(linear + network)}\n" in text


def test_the_index_of_error_messages_lists_what_the_notebooks_raise():
    """Each message of the table in 00 is printed by the notebook that the table sends the reader to."""
    index = prose(read(NAMES[0])).partition("## If you came with an error message")[2]
    rows = re.findall(r"^\| (.+?) \| \[(\d\d)\]", index, flags=re.MULTILINE)
    assert len(rows) >= 9
    for message, number in rows:
        if message.startswith("no error"):
            continue
        text = printed(read(next(name for name in NAMES if name.startswith(number))))
        assert message.split("…")[0].strip() in text, message


# GitHub shows the stored outputs and the Markdown, and nothing that needs a script, a style or a kernel.
EVERY = [*PATHS, *sorted((ROOT / "notebooks/zh").glob("*.ipynb"))]
on_every_notebook = pytest.mark.parametrize("path", EVERY, ids=lambda path: f"{path.parent.name}/{path.stem[:2]}")
CODE = "code_inline"
LIVE = "application/vnd.jupyter.widget-view+json"
BARE = re.compile(r"<[^>]* (object|at 0x\w+)>")
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
REFUSED = r"\\(operatorname|mbox|phantom|def|newcommand|require|href|style|class|cssId|unicode)\b"


@on_every_notebook
def test_github_has_something_to_show_for_each_output(path):
    for cell in code(read(path)):
        for out in cell.outputs:
            if out.output_type == "stream":
                assert "\x1b" not in out.text, "colours of a terminal"
                continue
            assert set(out.data) <= {LIVE, "image/png", "text/html", "text/plain"}
            assert "image/png" in out.data or not BARE.search(out.data["text/plain"])
            assert "image/png" in out.data or LIVE not in out.data, "a widget needs a picture beside it"
            assert not re.search(r"<(script|style|svg|iframe|img)\b", out.data.get("text/html", ""))


@on_every_notebook
def test_formulas_come_through_where_markdown_is_read_before_them(path):
    r"""Plain Markdown turns `\,` into a comma, and two underscores may become emphasis. And some macros are refused."""
    for source in (cell.source for cell in read(path).cells if cell.cell_type == "markdown"):
        shown = []
        for token in MarkdownIt("commonmark").enable("table").parse(source):
            parts = token.children or []
            shown += [
                "".join("\n" if part.type == "softbreak" else part.content for part in parts if part.type != CODE)
            ]
        text = re.sub(r"```.*?```|`[^`\n]*`", "", source, flags=re.DOTALL)
        assert Counter(FORMULA.findall(text)) == Counter(FORMULA.findall("\n\n".join(shown)))
        assert not re.search(r"\$\$\s*\$\$", text), "of two formulas without words between them, one was lost there"
        for found in FORMULA.finditer(text):
            before, after = text[: found.start()][-1:], text[found.end() :][:1]
            assert not re.match(r"[\w$\\-]", before) and not re.match(r"[\w$*-]", after), before + found[0] + after
            assert not re.search(rf"{REFUSED}|<", found[0]), found[0]


@on_every_notebook
def test_markdown_has_no_html_but_what_every_viewer_keeps(path):
    for source in (cell.source for cell in read(path).cells if cell.cell_type == "markdown"):
        for token in MarkdownIt("commonmark").enable("table").parse(source):
            for part in [token, *(token.children or [])]:
                if part.type in ("html_block", "html_inline"):
                    left = re.sub(r"</?(details|summary|sub|sup|kbd|br)>", "", part.content)
                    assert not re.search(r"[<`$*]|\]\(", left), "Markdown in a line of HTML stays as it is written"
