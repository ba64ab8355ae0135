"""The notebooks in a real JupyterLab: opened, run from top to bottom, no error and every widget on the page."""

import time
from pathlib import Path

import nbformat
import pytest
from pages import expect

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_shipped_notebook_runs(notebook, server, path, shots):
    """From a copy without outputs, so that nothing on the page can be left over from the author's own run."""
    copy = server.root / "notebooks" / path.name
    content = nbformat.read(path, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(content, copy)
    meant_to_raise = [
        number for number, cell in enumerate(content.cells) if "raises-exception" in cell.metadata.get("tags", [])
    ]

    notebook.open(f"notebooks/{path.name}")
    began = time.monotonic()
    notebook.run_all(timeout=180)
    print(f"\n{path.name}: {time.monotonic() - began:.0f} s to run")
    notebook.picture(shots / f"{path.stem}.png")
    expect(notebook.errors).to_have_count(len(meant_to_raise))
    assert notebook.cells_with_errors() == meant_to_raise, notebook.errors.all_inner_texts()
    expect(notebook.page.get_by_text("Error displaying widget")).to_have_count(0)
    expect(notebook.broken_widgets).to_have_count(0)
    for widget in notebook.widgets.all():
        expect(widget).to_be_visible()
    saved = notebook.saved(copy).cells
    raised = [any(output.output_type == "error" for output in cell.get("outputs", [])) for cell in saved]
    assert [number for number, error in enumerate(raised) if error] == meant_to_raise
    cells = [cell for cell in saved if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.source.strip() and cell.execution_count is None] == []
    outputs = [output for cell in cells for output in cell.outputs]
    expect(notebook.widgets).to_have_count(sum(WIDGET in output.get("data", {}) for output in outputs))
