"""The Chinese README and notebook 00 follow the English ones: the same parts, code, links and numbers in each part.

The comparisons are pure functions. They return sentences that say where the two differ, which is where something is to
be translated; none means that nothing differs. A sentence that is only worded anew is beyond them: read that one.
"""

import io
import math
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
README = {"en": "README.md", "zh": "README.zh-CN.md"}
NAME = "00-a-learning-rate-can-be-learned.ipynb"
NOTEBOOK = {"en": f"notebooks/{NAME}", "zh": f"notebooks/zh/{NAME}"}

CHINESE = re.compile(r"[\u4e00-\u9fff]")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FORMULA = re.compile(r"\$[^$\n]+\$")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


class Block(NamedTuple):
    """A part of a Markdown text, such as "heading 2", "code python", "table row", "list item", "picture", "text"."""

    kind: str
    text: str
    line: int


def blocks(text):
    """The parts of a Markdown text in order. Each row of a table and each item of a list is a part of its own."""
    found, fence = [], None
    joined = False  # does the next line go on with the last block?
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.startswith("```"):
                found.append(Block(f"code {fence[1]}".strip(), "\n".join(fence[2:]), fence[0]))
                fence = None
            else:
                fence.append(line)
            joined = False
        elif line.startswith("```"):
            fence = [number, line[3:].strip()]
        elif not line.strip():
            joined = False
        elif line.startswith("|"):
            found.append(Block("table row", line, number))
            joined = False
        elif heading := re.match(r"#+ ", line):
            found.append(Block(f"heading {len(heading[0]) - 1}", line, number))
            joined = False
        elif joined and not line.startswith("- "):
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{line}")
        else:
            kind = "list item" if line.startswith("- ") else "picture" if line.startswith("![") else "text"
            found.append(Block(kind, line, number))
            joined = True
    return found


def tokens(source):
    """[(token, line)] of Python code without comments and docstrings, which are translated, and without its layout."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
    found = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in skipped]
    breaks = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    kept = []
    for at, token in enumerate(found):
        alone = (at == 0 or found[at - 1].type in breaks) and found[at + 1 : at + 2] and found[at + 1].type in breaks
        if not (token.type == tokenize.STRING and alone):
            text = tokenize.tok_name[token.type] if token.type in breaks else token.string
            kept.append((text, token.start[0]))
    return kept


def statements(text, python):
    """[(what is compared, line)]: tokens of Python, else lines without their comments."""
    if python:
        return tokens(text)
    return [(re.sub(r"\s+# .*$", "", line), number) for number, line in enumerate(text.splitlines(), 1)]


def compare_code(english, chinese, python=True):
    """Sentences on the first place at which two pieces of code differ, comments and docstrings aside."""
    pair = [statements(text, python) for text in (english, chinese)]
    texts = [[text for text, _ in each] for each in pair]
    if texts[0] == texts[1]:
        return []
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts)))

    def shown(source, found):
        return f"`{source.splitlines()[found[same][1] - 1].strip()}`" if same < len(found) else "nothing more"

    return [f"the code differs: {shown(english, pair[0])} in English, {shown(chinese, pair[1])} in Chinese"]


def same_target(target):
    """A link's target without the part that the language decides."""
    return target.replace("README.zh-CN.md", "README.md").removeprefix("../").replace("zh/", "")


@cache
def facts(block):
    """{what: what must be the same in both languages} of a part that is not code."""
    text, found = block.text, {"links": [same_target(target) for target in LINK.findall(block.text)]}
    text = re.sub(r"<[^>]+>", "", LINK.sub("]", text))
    found["names in backticks"] = sorted(re.findall(r"`[^`]+`", text))
    text = re.sub(r"`[^`]+`", "", text)
    found["formulas"] = sorted(FORMULA.findall(text))
    found["numbers"] = sorted(NUMBER.findall(FORMULA.sub("", text)))
    found["cells in the row"] = text.count("|") - 1 if block.kind == "table row" else 0
    return found


@cache
def signature(block):
    """What a part is recognised by when some are missing on one side."""
    if block.kind.startswith("code"):
        return str([text for text, _ in statements(block.text, block.kind == "code python")])
    return str(facts(block))


def unlike(english, chinese, ratio):
    """How little two parts look like one and its translation: from 0 to 3, in which a missing part counts 0.8."""
    if english.kind.split()[0] != chinese.kind.split()[0]:
        return 3
    length = abs(math.log((len(english.text) + 1) / (len(chinese.text) + 1) / ratio))
    return (english.kind != chinese.kind or signature(english) != signature(chinese)) + min(length, 1) / 2


def align(english, chinese):
    """[(part, its translation)] with None for what is missing, so that what is unlike or missing is least in sum."""
    ratio = sum(len(block.text) for block in english) / max(1, sum(len(block.text) for block in chinese))
    band = abs(len(english) - len(chinese)) + 8  # no part is looked for further away than that
    best = {(0, 0): (0, None, None, None)}  # by the numbers of parts: the sum, where it came from, the last pair
    for a in range(len(english) + 1):
        for b in range(max(0, a - band), min(len(chinese), a + band) + 1):
            ways = []
            for before in ((a - 1, b - 1), (a - 1, b), (a, b - 1)):
                if before in best:
                    one = english[a - 1] if before[0] < a else None
                    other = chinese[b - 1] if before[1] < b else None
                    price = unlike(one, other, ratio or 1) if one and other else 0.8
                    ways.append((best[before][0] + price, before, one, other))
            if ways:
                best[a, b] = min(ways, key=lambda way: way[0])
    found, at = [], (len(english), len(chinese))
    while at != (0, 0):
        _, at, one, other = best[at]
        found.append((one, other))
    return found[::-1]


def untranslated(english, chinese):
    """Has this part words in English, and no Chinese character in Chinese? Table rows may be names and messages."""
    if english.kind.startswith("code") or english.kind == "table row":
        return False
    words = re.sub(r"<[^>]+>|`[^`]+`|\$[^$\n]+\$|\]\([^)]*\)", "", english.text)
    return bool(re.search(r"[A-Za-z]", words)) and not CHINESE.search(chinese.text)


def compare_block(english, chinese):
    """What differs between two parts that stand in the same place."""
    if english.kind != chinese.kind:
        return [f"{english.kind} in English, {chinese.kind} in Chinese"]
    if english.kind.startswith("code"):
        return compare_code(english.text, chinese.text, english.kind == "code python")
    said = []
    for what, expected in facts(english).items():
        if (found := facts(chinese)[what]) == expected:
            continue
        if isinstance(expected, int):
            said.append(f"{expected} {what} in English, {found} in Chinese")
            continue
        missing, more = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        sides = ((missing, "only in English"), (more, "only in Chinese"))
        told = [f"{', '.join(side.elements())} {where}" for side, where in sides if side]
        said.append(f"{what}: {'; '.join(told) or 'in another order'}")
    return said + ["not translated"] * untranslated(english, chinese)


def compare_text(english, chinese, where=""):
    """Sentences on the parts of two Markdown texts that differ."""
    said = []

    def start(block):
        short = " ".join(block.text.split())
        return f"{block.kind} “{short[:60]}{'…' * (len(short) > 60)}”"

    for one, other in align(blocks(english), blocks(chinese)):
        if other is None:
            said.append(f"{where}line {one.line}, {start(one)}: only in English")
        elif one is None:
            said.append(f"{where}line {other.line}, {start(other)}: only in Chinese")
        else:
            place = f"{where}lines {one.line} and {other.line}, {start(one)}: "
            said += [place + sentence for sentence in compare_block(one, other)]
    return said


def compare_notebooks(english, chinese):
    """Sentences on the cells of two notebooks that differ, outputs aside."""
    said = []
    pair = [{cell.id: cell for cell in notebook.cells} for notebook in (english, chinese)]
    for side, (cells, other) in (("English", pair), ("Chinese", pair[::-1])):
        for name, cell in cells.items():
            if name not in other:
                said.append(f"cell {name}, “{cell.source.splitlines()[0]}”: only in {side}")
    common = [[name for name in cells if all(name in side for side in pair)] for cells in pair]
    if common[0] != common[1]:
        said.append("the cells stand in another order")
    if english.metadata != chinese.metadata:
        said.append(f"the notebook's metadata: {english.metadata} in English, {chinese.metadata} in Chinese")
    for name in common[0]:
        one, other = (cells[name] for cells in pair)
        if one.cell_type != other.cell_type:
            said.append(f"cell {name}: {one.cell_type} in English, {other.cell_type} in Chinese")
        elif one.cell_type == "code":
            said += [f"cell {name}: {sentence}" for sentence in compare_code(one.source, other.source)]
        else:
            said += compare_text(one.source, other.source, f"cell {name}, ")
        if one.metadata != other.metadata:
            said.append(f"cell {name}: {one.metadata} in English, {other.metadata} in Chinese")
    return said


def shown(cell):
    """What a code cell shows, without the pixels, which differ between versions of Matplotlib."""
    for out in cell.outputs:
        data = out.get("data", {})
        yield out.output_type, out.get("text"), data.get("text/plain"), sorted(data), out.get("metadata")


def compare_outputs(english, chinese):
    """Sentences on the code cells that do not show the same, or were not run in the same order."""
    pairs = zip(english.cells, chinese.cells, strict=True)
    return [
        f"cell {one.id} shows something else: run python tests/refresh_outputs.py 00"
        for one, other in pairs
        if one.cell_type == "code"
        and (list(shown(one)), one.execution_count) != (list(shown(other)), other.execution_count)
    ]


def text(which):
    return (ROOT / README[which]).read_text(encoding="utf-8")


def notebook(which):
    return nbformat.read(ROOT / NOTEBOOK[which], as_version=4)


def told(sentences):
    return "translate:\n" + "\n".join(sentences)


def test_the_readme_says_the_same():
    said = compare_text(text("en"), text("zh"))
    assert not said, told(said)


def test_the_notebook_says_the_same():
    said = compare_notebooks(notebook("en"), notebook("zh"))
    assert not said, told(said)


def test_the_notebook_shows_the_same():
    """So what tests/test_notebooks.py finds out about the English outputs holds for these, too."""
    nbformat.validate(notebook("zh"))
    said = compare_outputs(notebook("en"), notebook("zh"))
    assert not said, "\n".join(said)


def test_there_is_enough_to_compare():
    """A text that nobody could read apart would differ in nothing."""
    kinds = Counter(block.kind.split()[0] for block in blocks(text("zh")))
    assert kinds["heading"] >= 9 and kinds["code"] >= 12 and kinds["table"] >= 60 and kinds["picture"] == 2
    cells = "\n\n".join(cell.source for cell in notebook("zh").cells if cell.cell_type == "markdown")
    assert len(CHINESE.findall(text("zh"))) > 2000 and len(CHINESE.findall(cells)) > 1500


@pytest.mark.parametrize("files", [README, NOTEBOOK], ids=["readme", "notebook"])
@pytest.mark.parametrize("which", ["en", "zh"])
def test_links_lead_somewhere_and_to_the_other_language(files, which):
    path = ROOT / files[which]
    content = path.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in LINK.findall(content) if not target.startswith("https://")]
    assert len(targets) >= 12
    assert [target for target in targets if not (path.parent / target).is_file()] == []
    there = (ROOT / files["zh" if which == "en" else "en"]).resolve()
    assert (path.parent / targets[0]).resolve() == there, "the line under the title"


def test_the_code_that_the_chinese_doctor_shows_is_the_code_above_it():
    loop, output = (block.text for block in blocks(text("zh")) if "torch.autograd.grad(loss, w)" in block.text)
    quoted = re.findall(r"^>?\s+\d+ \| (.*)$", output, flags=re.MULTILINE)
    assert len(quoted) == 5 and "\n".join(quoted) in loop


def replaced(old, new):
    def change(content):
        assert old in content
        return content.replace(old, new, 1)

    return change


def without_line(start):
    return lambda content: "".join(line for line in content.splitlines(True) if not line.startswith(start))


README_CHANGES = {
    "a heading's level": (replaced("\n## Start\n", "\n### Start\n"), "heading 3"),
    "a heading more": (replaced("\n## Tests\n", "\n## News\n\n## Tests\n"), "heading 2 “## "),
    "a paragraph more": (replaced("\n## Tests\n", "\nSome news.\n\n## Tests\n"), "“Some news.”: only in English"),
    "a number": (replaced("15 to 130 times", "15 to 140 times"), "numbers: 140 only in English; 130 only in Chinese"),
    "a number in a table": (replaced("| 1.7 | 1.3 |", "| 1.7 | 1.4 |"), "numbers: 1.4 only in English"),
    "a row more": (
        replaced("\n| `edge.py`", "\n| `new.py` | something new |\n| `edge.py`"),
        "“| `new.py` | something new |”: only in English",
    ),
    "a row less": (without_line("| higher | 1.7"), "“| higher | 1.7 | 1.3"),
    "a column more": (replaced("|---|---|\n| `python3", "|---|---|---|\n| `python3"), "cells in the row"),
    "a line of code": (replaced("    for _ in range(2):", "    for _ in range(3):"), "`for _ in range(3):` in English"),
    "a string in code": (replaced('Workbench("runs.csv")', 'Workbench("all.csv")'), '`Workbench("all.csv")` only in'),
    "a command": (replaced("conda activate metalib", "conda activate lab"), "`conda activate lab` in English"),
    "an output": (replaced("finite differences -100.543", "finite differences -100.5"), "-100.5 (wrong)` in English"),
    "a name": (replaced("`truncated` and", "`biased` and"), "`biased` only in English"),
    "a link": (replaced("(LICENSE)", "(LICENCE)"), "links: LICENCE only in English; LICENSE only in Chinese"),
    "a picture": (replaced("pictures/lab.png", "pictures/new.png"), "links: notebooks/pictures/new.png only"),
}


@pytest.mark.parametrize(("change", "says"), README_CHANGES.values(), ids=README_CHANGES)
def test_a_change_of_the_english_readme_is_told(change, says):
    said = compare_text(change(text("en")), text("zh"))
    assert any(says in sentence for sentence in said), said
    assert len(said) == 1, said


def test_each_part_of_the_readme_that_goes_is_told():
    lines = text("en").splitlines()
    for block in blocks(text("en")):
        height = block.text.count("\n") + 1 + 2 * block.kind.startswith("code")
        left = lines[: block.line - 1] + [""] * (height - 1) + lines[block.line - 1 + height :]
        assert compare_text("\n".join(left), text("zh")), block


def test_each_number_of_the_readme_that_changes_is_told():
    checked = 0
    for one, other in align(blocks(text("en")), blocks(text("zh"))):
        for number in re.finditer(r"\d+", one.text):
            if one.kind.startswith("code") and " # " in one.text[: number.start()].rpartition("\n")[2]:
                continue  # in a comment
            changed = f"{one.text[: number.start()]}{int(number[0]) + 1}{one.text[number.end() :]}"
            assert compare_block(one._replace(text=changed), other), changed
            checked += 1
    assert checked > 300


@pytest.mark.parametrize("which", ["text", "list item", "heading 2"])
def test_what_is_left_in_english_is_told(which):
    chosen = [block for block in blocks("## A\n\nWords.\n\n- An item.\n") if block.kind == which]
    assert [compare_block(block, block) for block in chosen] == [["not translated"]]


def cell_changed(name, old, new):
    def change(content):
        (cell,) = [cell for cell in content.cells if cell.id == name]
        assert old in cell.source
        cell.source = cell.source.replace(old, new, 1)

    return change


def place(content, name):
    return [cell.id for cell in content.cells].index(name)


def dropped(content):
    del content.cells[place(content, "cell-04")]


def swapped(content):
    at = place(content, "cell-04")
    content.cells[at : at + 2] = content.cells[at : at + 2][::-1]


def added(content):
    content.cells.append(nbformat.v4.new_markdown_cell("News.", id="news"))


def tagged(content):
    content.cells[place(content, "cell-02")].metadata["tags"] = ["raises-exception"]


def turned(content):
    content.cells[place(content, "cell-04")] = nbformat.v4.new_markdown_cell("import math", id="cell-04")


NOTEBOOK_CHANGES = {
    "a cell less": (dropped, "cell cell-04, “import math”: only in Chinese"),
    "a cell more": (added, "cell news, “News.”: only in English"),
    "cells swapped": (swapped, "another order"),
    "another kind of cell": (turned, "cell cell-04: markdown in English, code in Chinese"),
    "a tag": (tagged, "raises-exception"),
    "a line of code": (cell_changed("cell-05", "lr=0.05", "lr=0.1"), "lr=0.1), []` in English"),
    "a line of code more": (cell_changed("cell-04", "torch", "torch\nimport os"), "`import os` in English"),
    "a string": (cell_changed("cell-12", 'goal="00"', 'goal="01"'), 'goal="01"'),
    "a number": (cell_changed("cell-01", "0.001, 0.01", "0.002, 0.01"), "numbers: 0.002 only in English"),
    "a formula": (cell_changed("cell-08", "$w - 2$", "$w - 3$"), "formulas: $w - 3$ only in English"),
    "a row": (
        cell_changed("cell-15", "| [11](11", "| [12](12-new.ipynb) | New |\n| [11](11"),
        "“| [12](12-new.ipynb) | New |”: only in English",
    ),
    "a link": (cell_changed("cell-15", "#The-bill", "#The-price"), "links: 04-buffers.ipynb#The-price only"),
    "a heading": (cell_changed("cell-08", "## Why", "### Why"), "heading 3 in English, heading 2 in Chinese"),
    "a solution": (cell_changed("5b591ce0", "log_rate.exp() * grad", "log_rate * grad"), "`w = w - log_rate * grad`"),
    "a hint": (cell_changed("5b591ce0", "</details>", "More.\n\n</details>"), "“More.”: only in English"),
}


@pytest.mark.parametrize(("change", "says"), NOTEBOOK_CHANGES.values(), ids=NOTEBOOK_CHANGES)
def test_a_change_of_the_english_notebook_is_told(change, says):
    english = notebook("en")
    change(english)
    said = compare_notebooks(english, notebook("zh"))
    assert any(says in sentence for sentence in said), said
    assert len(said) == 1, said


def test_each_cell_that_goes_or_stays_english_is_told():
    for at, cell in enumerate(notebook("en").cells):
        less, mixed = notebook("en"), notebook("zh")
        del less.cells[at]
        assert any(f"cell {cell.id}" in sentence for sentence in compare_notebooks(less, mixed))
        if cell.cell_type == "markdown":
            mixed.cells[at].source = cell.source
            assert any("not translated" in sentence for sentence in compare_notebooks(notebook("en"), mixed)), cell.id


def test_an_output_that_is_not_run_again_is_told():
    english = notebook("en")
    english.cells[place(english, "cell-07")].outputs[0].text = "another line\n"
    assert any("cell cell-07 shows something else" in said for said in compare_outputs(english, notebook("zh")))


def test_comments_docstrings_and_layout_may_differ_and_strings_may_not():
    english = 'def f(x):\n    """Words."""\n    return g(x, "a")  # why\n\n\nawait f(1)\n'
    chinese = 'def f(x):\n    """文字。"""\n    # 原因\n    return g(\n        x, "a"\n    )\n\n\nawait f(1)\n'
    assert compare_code(english, chinese) == []
    (said,) = compare_code(english, chinese.replace('"a"', '"b"'))
    assert said == 'the code differs: `return g(x, "a")  # why` in English, `x, "b"` in Chinese'
    (said,) = compare_code(english + "f(2)\n", chinese)
    assert said == "the code differs: `f(2)` in English, nothing more in Chinese"
