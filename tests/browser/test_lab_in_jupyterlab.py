"""The trajectory lab and the shipped notebooks in a real JupyterLab: what a reader clicks is what is clicked here."""

import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from pages import LabPanel, expect

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
MORE_THAN_ANYONE_WAITS_FOR = 5000  # outer steps: Stop must come before the end, also on a fast machine
WIDGET = "application/vnd.jupyter.widget-view+json"
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
LAB = ["from metalib.lab import TrajectoryLab", "lab = TrajectoryLab(inner_steps=5)\nlab"]


def small_notebook(root: Path, *sources: str) -> str:
    """Write a notebook of these code cells under `root`; its path, as `open_lab` takes it."""
    path = root / "notebooks" / "browser_test.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources], metadata=PYTHON), path)
    return f"notebooks/{path.name}"


def open_lab(notebook, path: str) -> LabPanel:
    notebook.open(path)
    notebook.run_all()
    lab = LabPanel(notebook.page)
    expect(lab.panel).to_be_visible()
    return lab


def test_run_watch_and_stop(notebook, server, shots):
    lab = open_lab(notebook, small_notebook(server.root, *LAB, "run = await lab.run()", "print(6 * 7)"))
    assert notebook.cells.last.locator(".jp-OutputArea-output").inner_text().strip() == "42"
    expect(lab.status).to_contain_text("in 200 outer steps")
    lab.screenshot(shots / "lab-finished.png")

    slider = lab.panel.get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    expect(lab.panel.locator(".widget-readout").first).to_have_text("6")
    lab.control("Version").select_option("data_write")
    expect(lab.panel.get_by_text("Silent, the meta-gradient is None")).to_be_visible()
    lab.control("Outer steps").fill(str(MORE_THAN_ANYONE_WAITS_FOR))

    notebook.ask("""
import time
times = {}
lab.halt.on_click(lambda _: times.setdefault("heard", time.perf_counter()))
lab.status.observe(lambda change: times.update(word=time.perf_counter()), "value")
""")
    seconds_in_page = lab.watch_stop()
    pictures, progress = [lab.settled_plot()], []
    lab.run.click()
    for _ in range(5):
        pictures.append(lab.next_plot(pictures[-1]))
        progress.append(lab.progress())
    assert pictures[0].startswith(b"\x89PNG")
    assert len(set(pictures)) == 6
    assert 0 <= progress[0] < progress[-1] < 100
    expect(lab.run).to_be_disabled()
    lab.screenshot(shots / "lab-running.png")

    # The kernel answers in the middle of the run, and the run goes on.
    told = int(notebook.ask("print(len(lab.runs[-1].records))"))
    assert lab.status.inner_text().startswith("outer step "), "the run was over before the kernel answered"
    assert 0 < told < MORE_THAN_ANYONE_WAITS_FOR

    lab.stop.click()
    expect(lab.status).to_contain_text("stopped: data_write, K = 6", timeout=5000)
    in_kernel, in_page = float(notebook.ask("print(times['word'] - times['heard'])")), seconds_in_page()
    print(f"\nfrom Stop to stopped: {1000 * in_kernel:.0f} ms in the kernel, {1000 * in_page:.0f} ms in the page")
    assert in_kernel < 0.5
    assert in_page < 1.5
    done = int(notebook.ask("print(len(lab.runs[-1].records))"))
    assert told < done < MORE_THAN_ANYONE_WAITS_FOR
    expect(lab.status).to_contain_text(f"in {done} outer steps; no gradient reaches the rate")

    still = lab.settled_plot()
    notebook.page.wait_for_timeout(500)
    assert lab.plot() == still, "the picture moves after Stop"
    expect(lab.run).to_be_enabled()
    expect(lab.stop).to_be_disabled()
    expect(lab.control("Version")).to_be_enabled()
    lab.screenshot(shots / "lab-stopped.png")
    no_complaints(notebook)


def test_what_cannot_run_is_a_sentence(notebook, server, shots):
    lab = open_lab(notebook, small_notebook(server.root, *LAB))
    expect(lab.status).to_have_text("ready")
    lab.screenshot(shots / "lab-idle.png")
    empty = lab.settled_plot()

    lab.control("Version").select_option("in_place")
    lab.run.click()
    expect(lab.status).to_contain_text("in_place, K = 5, start 0.1: RuntimeError: a leaf Variable")
    expect(lab.run).to_be_enabled()
    lab.next_plot(empty)
    assert "RuntimeError: a leaf Variable" in written_in_the_picture(notebook)
    lab.screenshot(shots / "lab-raises.png")

    lab.control("Start rate").fill("-1")
    lab.run.click()
    expect(lab.status).to_have_text("start_rate is -1.0: give a number above 0 and at most 1,000,000")
    expect(lab.run).to_be_enabled()
    assert notebook.ask("print(len(lab.runs))") == "1"
    lab.screenshot(shots / "lab-refuses.png")

    lab.clear.click()
    expect(lab.status).to_have_text("ready")
    assert notebook.ask("print(len(lab.runs))") == "0"
    lab.wait_for_plot(empty)
    no_complaints(notebook)


def no_complaints(notebook) -> None:
    assert notebook.errors.all_inner_texts() + notebook.warnings.all_inner_texts() == []


def written_in_the_picture(notebook) -> str:
    return " ".join(notebook.ask("print(*(text.get_text() for text in lab.plot.left.texts))").split())


def test_a_double_click_on_run_starts_one_run(notebook, server):
    lab = open_lab(notebook, small_notebook(server.root, *LAB))
    # Both clicks in one go: the second is on its way before the kernel can have disabled the button.
    lab.run.evaluate("button => { button.click(); button.click() }")
    expect(lab.status).to_contain_text("in 200 outer steps")
    notebook.page.wait_for_timeout(500)
    expect(lab.run).to_be_enabled()
    assert notebook.ask("print([len(run.records) for run in lab.runs])") == "[200]"
    no_complaints(notebook)


def test_the_dark_theme(notebook, server, shots):
    server.use_theme("JupyterLab Dark")
    try:
        lab = open_lab(notebook, small_notebook(server.root, *LAB, "run = await lab.run()"))
        expect(notebook.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
        expect(lab.status).to_contain_text("in 200 outer steps")
        lab.screenshot(shots / "lab-dark.png")
    finally:
        server.use_theme("JupyterLab Light")


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
    for widget in notebook.widgets.all():
        expect(widget).to_be_visible()
    saved = notebook.saved(copy).cells
    raised = [any(output.output_type == "error" for output in cell.get("outputs", [])) for cell in saved]
    assert [number for number, error in enumerate(raised) if error] == meant_to_raise
    cells = [cell for cell in saved if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.source.strip() and cell.execution_count is None] == []
    outputs = [output for cell in cells for output in cell.outputs]
    expect(notebook.widgets).to_have_count(sum(WIDGET in output.get("data", {}) for output in outputs))
