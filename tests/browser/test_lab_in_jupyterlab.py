"""The trajectory lab in a real JupyterLab: what a reader clicks is what is clicked here."""

import os
import re
import time
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_notebook
from pages import LabPanel, expect

MORE_THAN_ANYONE_WAITS_FOR = 5000  # outer steps: Stop must come before the end, also on a fast machine
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
    expect(notebook.broken_widgets).to_have_count(0)


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
        no_complaints(notebook)
    finally:
        server.use_theme("JupyterLab Light")


def test_by_keyboard_alone_through_the_extremes_of_every_control(notebook, server, shots):
    """Tab reaches each control in the order in which they stand, and keys alone move it to both of its ends."""
    lab = open_lab(notebook, small_notebook(server.root, *LAB, "lab.controls['outer_steps'].value = 3"))
    page = notebook.page
    lab.control("Version").focus()
    order = []
    for _ in range(13):
        focused = page.evaluate("""() => {
            const here = document.activeElement
            return here.getAttribute('aria-label') || here.labels?.[0]?.textContent || here.textContent
                || here.closest('.widget-slider')?.textContent
        }""")
        order.append(focused.strip())
        page.keyboard.press("Tab")
    wanted = ["Version", "Problem", "Rate model", "Inner steps K", "Outer steps", "Device", "Start rate", "Meta rate"]
    places = [next(at for at, name in enumerate(order) if word in name) for word in [*wanted, "Seed", "Carry", "Run"]]
    assert places == sorted(places), order

    for name in ("Version", "Problem", "Rate model"):
        for key in ("End", "Home"):
            lab.control(name).press(key)
            run_by_key(lab)
    slider = lab.panel.get_by_role("slider")
    for key, steps in (("End", "20"), ("Home", "1")):
        slider.press(key)
        expect(lab.panel.locator(".widget-readout").first).to_have_text(steps)
        run_by_key(lab)
    for name, numbers in (("Outer steps", "1"), ("Seed", "4294967295"), ("Start rate", "1e6"), ("Meta rate", "1e-12")):
        lab.control(name).fill(numbers)
        lab.control(name).press("Enter")
        run_by_key(lab)
    lab.control("Carry weights over").press("Space")
    run_by_key(lab)
    expect(lab.image).to_have_attribute("title", re.compile(f"{re.escape(lab.status.inner_text())}$"))
    lab.screenshot(shots / "lab-extremes.png")
    assert int(notebook.ask("print(len(lab.runs))")) == 13
    no_complaints(notebook)


def run_by_key(lab) -> None:
    """Press Run with the space bar, and wait until it can be pressed again."""
    lab.status.evaluate("status => { status.textContent = 'waiting' }")
    lab.run.press("Space")
    expect(lab.status).not_to_have_text("waiting")
    expect(lab.run).to_be_enabled()
    expect(lab.status).to_contain_text("K = ")


def test_many_runs_leave_the_kernel_and_the_page_as_they_were(notebook, server):
    """RUNS=400 is what somebody presses in an hour. Each run may keep its records, and no picture or widget."""
    runs = int(os.environ.get("RUNS", "10"))
    lab = open_lab(notebook, small_notebook(server.root, *LAB, "lab.controls['outer_steps'].value = 3"))

    def size() -> float:
        return float(notebook.ask("import gc, psutil; gc.collect(); print(psutil.Process().memory_info().rss / 2**20)"))

    for _ in range(8):  # one more than a picture shows
        run_by_key(lab)
    before = size()
    for _ in range(runs):
        run_by_key(lab)
    grown = size() - before
    slider, began = lab.panel.get_by_role("slider"), time.monotonic()
    slider.press("ArrowRight")
    expect(lab.panel.locator(".widget-readout").first).to_have_text("6")
    seconds = time.monotonic() - began
    print(f"\n{runs} runs: the kernel has grown by {grown:.1f} MiB; the page answers in {seconds:.2f} s")
    assert int(notebook.ask("print(len(lab.runs))")) == 8 + runs
    assert grown < 100 * max(runs / 400, 0.25)
    assert seconds < 2
    no_complaints(notebook)


def test_closing_the_page_in_the_middle_leaves_nothing_behind(notebook, server):
    """The kernel lives on and ends the run; when it is shut down in the middle of one, nothing lives on."""
    path = small_notebook(server.root, *LAB, "lab.controls['outer_steps'].value = 300")
    lab = open_lab(notebook, path)
    pid = notebook.ask("import asyncio, os, sys, traceback; print(os.getpid())")
    lab.run.click()
    lab.next_plot(lab.plot())
    notebook.page.goto("about:blank")
    notebook.open(path)
    deadline = time.monotonic() + 30
    while notebook.ask("print(lab.running)") != "False":
        assert time.monotonic() < deadline
    assert notebook.ask("print(os.getpid(), len(lab.runs[-1].records))") == f"{pid} 300"
    assert notebook.ask("print([task for task in asyncio.all_tasks() if 'TrajectoryLab' in repr(task)])") == "[]"
    frames = "(frame for top in sys._current_frames().values() for frame, _ in traceback.walk_stack(top))"
    assert notebook.ask(f"print([frame for frame in {frames} if 'metalib' in frame.f_code.co_filename])") == "[]"
    notebook.ask(f"lab.controls['outer_steps'].value = {MORE_THAN_ANYONE_WAITS_FOR}; lab.press_run()")
    kernel = psutil.Process(int(pid))
    server.end_kernels()
    kernel.wait(timeout=20)


def test_the_workbench_compares_and_keeps(notebook, server, shots):
    """Its runs are there again in a new kernel, and after the page was loaded anew."""
    bench = ["from metalib.workbench import Workbench", "lab = Workbench('kept.csv', outer_steps=30)\nlab"]
    table = server.root / "notebooks" / "kept.csv"
    lab = open_lab(notebook, small_notebook(server.root, *bench))
    lab.run.click()
    expect(lab.status).to_contain_text("in 30 outer steps")
    page = notebook.page
    page.get_by_role("tab", name="Keep").click()
    expect(page.locator(".files-status")).to_contain_text("kept.csv holds 1 run")
    assert table.exists()

    page.get_by_role("tab", name="Compare").click()
    comparison = page.locator(".lab-comparison")
    comparison.get_by_label("Seeds").fill("3")
    comparison.get_by_role("button", name="Compare").click()
    expect(page.locator(".compare-status")).to_contain_text(") at K = 1; ")
    expect(page.locator("img.compare-plot")).to_have_attribute("title", re.compile("first_order: .* at K = 1; "))
    page.wait_for_timeout(500)
    page.locator(".workbench").screenshot(path=shots / "workbench-compare.png")
    no_complaints(notebook)

    page.get_by_role("tab", name="Keep").click()
    page.locator(".workbench").screenshot(path=shots / "workbench-keep.png")
    server.end_kernels()
    lab = open_lab(notebook, "notebooks/browser_test.ipynb")
    page.get_by_role("tab", name="Keep").click()
    expect(page.locator(".files-status")).to_contain_text("holds 1 run, 1 of them new here")
    page.get_by_role("tab", name="Run", exact=True).click()
    assert "in 30 outer steps" in lab.image.get_attribute("title")
    no_complaints(notebook)
