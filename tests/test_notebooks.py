"""What nbval does not look at: outputs are there, in order and clean, links lead somewhere, cells are short.

nbval itself runs every cell again and compares what it prints; see `addopts` in pyproject.toml.
"""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.name for path in PATHS]
LESSONS = ["02", "03", "04", "05", "06", "07", "09", "10"]
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
    assert [name[:2] for name in NAMES] == ["00", *LESSONS]


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
        assert not file or file in NAMES, target
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
                assert alternative and alternative in text
    assert figures >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if name[:2] in LESSONS])
def test_a_lesson_has_its_parts(name):
    notebook = read(name)
    text, source = prose(notebook), "\n".join(cell.source for cell in code(notebook))
    for heading in ("## Predict", "## Play", "## What would have fooled you"):
        assert heading in text, heading
    assert "**Goal:**" in text and re.search(r"^predictions? = ", source, flags=re.MULTILINE)
    assert "TrajectoryLab(" in source and "show(lab.picture())" in source
    assert re.match(r"# \d\d · .+", text), "the title is the claim"


@pytest.mark.parametrize("name", NAMES)
def test_the_lab_shows_a_picture_where_there_is_no_kernel(name):
    outputs = [out.get("data", {}) for cell in code(read(name)) for out in cell.outputs]
    views = [data for data in outputs if "application/vnd.jupyter.widget-view+json" in data]
    assert len(views) == 1 and views[0]["image/png"]


SHOWN = {  # what each notebook must really have printed: the errors and the numbers that its prose is about
    "00": [
        "from 0.01 the rate goes to 0.48; from 0.1 the rate goes to 0.49; from 0.4 the rate goes to 0.48",
        "n / (2n + 8) = 0.4808; found by integration: 0.4808",
        "K = 10 from 0.01: first meta-gradient -0.40, last -0.0036",
    ],
    "02": [
        "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation",
        "loss 0.3684, after two steps 0.2713; rate.grad = None",
        "log_rate: autograd None, finite differences -0.53702 (cut)",
        "classifier  K = 1:  you said right, the referee says right",
        "classifier  K = 2:  you said right, the referee says raises",
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation",
        "is at version 2; expected version 1 instead",
    ],
    "03": [
        "outer loss at rate 0.1: 0.2713, at rate 0.2: 0.1947; rate.grad = None",
        "through .data: the derivative of w² at 3 is 60",
        "gradients of the meta-model: [None, None]",
        "its parameters have moved by: [0.0, 0.0]",
        "outer step 999: weight 2.000",
    ],
    "04": [
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        "copy_without_graph rate.grad = None",
        "buffer_copy: right, right, right, right, raises, raises",
        "RuntimeError: Trying to backward through the graph a second time",
        "RuntimeError: Only Tensors created explicitly by the user",
        "ValueError: optimizer got an empty parameter list",
        "TypeError: cannot assign",
    ],
    "05": [
        "the module's own weights changed: False",
        "K = 1, create_graph=False: -0.3716, truth -0.3716, off by 0.0%: right",
        "K = 2, create_graph=False: -0.5440, truth -0.4905, off by 10.9%: wrong",
        "K = 5, create_graph=True : -0.4264, truth -0.4264, off by 0.0%: right",
        "right in the first column: 5 of 13",
        "K = 2: functional 0.48, first order 0.89, best rate 0.47",
        "K = 5: functional 0.36, first order 0.43, best rate 0.46",
        "K = 2: raises Trying to backward through the graph a second time",
        "the last 100 rates average 0.481; the best rate is 0.481",
    ],
    "06": [
        "AttributeError: 'Tensor' object has no attribute 'step'",
        "name is 'net.alpha': False",
        "g: beta: independent",
        "ImportError: cannot import name '_stateless'",
        "seed 1: alpha -0.414 → -0.395; first loss: printed 0.72, is 7.19; .grad grew to 17 times its size",
        "K = 5: right",
        "held-out loss 1.11 → 1.10, rate 0.1 → 0.23",
        "held-out loss 1.11 → 1.15, rate 0.1 → 0.04",
        "ln 3 = 1.0986",
    ],
    "07": [
        "one more step: 25.0 KiB",
        "forward            81    110    110    110",
        "K = 20: forward -0.328152, reverse -0.328152, equal to 12 digits: True",
        "RuntimeError: … modified by an inplace operation …",
        "16 steps in segments of  4:  30 KiB; equal to reverse to 12 digits: True",
        "last 5 steps   2% of it",
        "through all steps, functional: rate 0.1 → 0.518",
        "784-256-10: forward",
        "a segment of 16 steps: 152 loss evaluations before the backward pass",
        "8 steps: 107 KiB with torch.utils.checkpoint, 30 KiB without",
        "create_graph=False, a new level each step True :  44 KiB at K = 5,  44 at K = 15",
        "functional_call 15.989, FromModule 15.989, slots by name 0.586",
        "Not yet. The line for v should be the derivative of the line for w.",
    ],
    "09": [
        "given clones,      K = 2: you said right, the referee says raises",
        "Adam: right, raises, raises, right, nan, nan",
        "clones given and seen, all steps: you said 11, it is 2: RAdam, SGD",
        "Adagrad: raises. Line 17 raises TypeError: addcdiv_(): argument 'value' must be Number, not Tensor.",
        "add_(): argument 'alpha' must be Number, not Tensor",
        "the gradient of the weight for the rate: None",
        "15 of 40 gradients are exactly 0",
        "RAdam, K = 6: nan",
        "new in each step, K = 2: -17.637, truth -15.361: wrong",
        "learned start, SGD, momentum: wrong, wrong, wrong",
        "adamw        right, right, right",
    ],
    "10": [
        "You said ('cut', 7). The referee and the doctor say ('raises', 7).",
        "The referee and the doctor say ('cut', 8).",
        "The referee and the doctor say ('wrong', 5).",
        "The referee and the doctor say ('independent', 6).",
        "You found 2 of 10 verdicts and 2 of 10 lines.",
        "4 of 10 pass: functional, clipped, momentum, fresh",
        "6 loops compute the repaired loop's number: buffers, functional, optimiser, layers, forum, fresh",
        "outer loss on same points: meta-gradient -0.386",
        "outer loss on held-out: meta-gradient +0.917",
        "right: autograd and finite differences agree",
    ],
}


@pytest.mark.parametrize("start", SHOWN)
def test_it_shows_what_its_prose_is_about(start):
    notebook = read(next(name for name in NAMES if name.startswith(start)))
    for line in SHOWN[start]:
        assert line in printed(notebook), line


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
