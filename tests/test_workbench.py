"""The lab's other tabs: the comparison, and runs that outlive the kernel."""

import asyncio
import math
import statistics

import pytest

from metalib.compare import Comparison, compared, ends
from metalib.lab import TrajectoryLab
from metalib.settings import Settings
from metalib.sweep import Sweep, grid, sweep
from metalib.tables import load_csv
from metalib.workbench import Workbench

SHORT = {"outer_steps": 4}


def test_the_comparison_draws_mean_and_spread_over_seeds():
    settings = grid(Settings(**SHORT), version=("functional", "first_order"), inner_steps=(1, 3), seed=range(5))
    found = sweep(settings)
    table = ends(found.runs)
    assert set(table) == {"functional", "first_order"} and list(table["functional"]) == [1, 3]
    rates = [run.records[-1].rates["rate"] for run in found.runs if run.settings.version == "functional"]
    assert table["functional"] == {1: rates[:5], 3: rates[5:]}
    text = compared(found).text
    mean = statistics.mean(rates[:5])
    assert f"functional: {mean:.3g} ({min(rates[:5]):.3g} to {max(rates[:5]):.3g}) at K = 1; " in text


def test_runs_that_ended_early_are_left_out_and_counted():
    found = sweep(grid(Settings(**SHORT), version=("in_place", "functional"), seed=range(2)))
    assert "2 of 4 runs ended early and are left out" in compared(found).text and set(ends(found.runs)) == {
        "functional"
    }


def test_rates_for_each_tensor_are_told_apart():
    found = sweep(grid(Settings(problem="classifier", rate="per tensor", **SHORT), seed=range(2)))
    assert set(ends(found.runs)) == {
        f"functional, {name}" for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    }


def test_nothing_to_compare_is_a_picture_too():
    assert compared(Sweep([], {}, [])).text == "no run yet"


def comparing(scenario, **settings):
    async def run():
        tab = Comparison(lambda: Settings(**(SHORT | settings)))
        tab.seeds.value = 3
        await scenario(tab)

    asyncio.run(run())


def test_the_tab_runs_what_is_chosen_with_the_labs_other_settings():
    async def scenario(tab):
        tab.versions.value, tab.steps.value = ("functional", "item"), "2 1, 2"
        found = await tab.run()
        chosen = [(run.settings.version, run.settings.inner_steps, run.settings.seed) for run in found.runs]
        assert chosen == [(v, k, s) for v in ("functional", "item") for k in (1, 2) for s in (7, 8, 9)]
        assert {run.settings.meta_rate for run in found.runs} == {0.02}
        assert "at K = 1; " in tab.status.value and tab.image.tooltip == compared(found).text
        assert not tab.go.disabled and tab.halt.disabled and tab.bar.value == 1.0

    comparing(scenario, seed=7, meta_rate=0.02)


@pytest.mark.parametrize(
    ("steps", "versions", "said"),
    [
        ("0", ("functional",), "inner steps is 0: give a whole number from 1 to 1,000"),
        ("2.5", ("functional",), "inner steps is &#x27;2.5&#x27;: give a whole number"),
        ("-1", ("functional",), "inner steps is &#x27;-1&#x27;: give a whole number"),
        ("<b>", ("functional",), "inner steps is &#x27;&lt;b&gt;&#x27;"),
        ("", ("functional",), "no inner steps are given"),
        ("1", (), "no version is chosen"),
    ],
)
def test_a_choice_that_cannot_be_gets_a_sentence(steps, versions, said):
    async def scenario(tab):
        tab.steps.value, tab.versions.value = steps, versions
        assert await tab.run() is None
        assert said in tab.status.value and not tab.go.disabled

    comparing(scenario)


def test_stop_ends_a_comparison_and_keeps_what_is_done():
    async def scenario(tab):
        tab.versions.value, tab.steps.value = ("functional", "first_order"), "1"
        running = asyncio.ensure_future(tab.run())
        while tab.share < 0.5:  # the functional ones are done, as one program
            await asyncio.sleep(0.01)
        assert tab.go.disabled and not tab.halt.disabled
        tab.halt.click()
        found = await asyncio.wait_for(running, 20)
        assert found.left and len(found.runs) >= 3 and "interrupted: " in tab.status.value

    comparing(scenario, outer_steps=400)


def test_the_event_loop_goes_on_while_it_compares():
    async def scenario(tab):
        turns, running = 0, asyncio.ensure_future(tab.run())
        while not running.done():
            turns += 1
            await asyncio.sleep(0.005)
        assert turns > 5

    comparing(scenario, outer_steps=50)


def working(scenario):
    asyncio.run(scenario())


def test_runs_outlive_the_kernel_when_there_is_a_table(tmp_path):
    table = tmp_path / "runs.csv"

    async def first():
        bench = Workbench(str(table), **SHORT)
        await bench.run()
        bench.controls["inner_steps"].value, bench.controls["start_rate"].value = 20, 1e6
        await bench.run()  # diverges: its nan must not make it a new run each time
        bench.files.save()
        assert bench.files.status.value == f"{table} holds 2 runs"

    async def second():
        bench = Workbench(str(table), **SHORT)
        assert [len(run.records) for run in bench.runs] == [4, 1]
        assert not math.isfinite(bench.runs[1].records[0].meta_loss)
        assert "2 of them new here" in bench.files.status.value and "diverged" in bench.image.tooltip
        await bench.run()
        bench.clear()
        bench.files.load()
        assert len(bench.runs) == len(load_csv(table)) == 3

    working(first)
    working(second)


def test_a_table_may_be_a_path_and_anything_else_gets_a_sentence(tmp_path):
    bench = Workbench(tmp_path / "runs.csv")
    assert bench.files.path.value == str(tmp_path / "runs.csv") and "is not there yet" in bench.files.status.value
    with pytest.raises(ValueError, match="table is 3: give the name of a file, such as 'runs.csv'"):
        Workbench(3)


def test_saving_while_a_run_is_running_keeps_no_half_run(tmp_path):
    async def scenario():
        bench = Workbench(tmp_path / "runs.csv", **SHORT)
        await bench.run()
        running = asyncio.ensure_future(bench.run())
        while not (bench.running and bench.runs[-1].records):
            await asyncio.sleep(0)
        bench.files.save()
        assert bench.files.status.value == f"{tmp_path / 'runs.csv'} holds 1 run, without the one that is running"
        await running
        assert [len(run.records) for run in load_csv(tmp_path / "runs.csv")] == [4, 4]

    working(scenario)


def test_saving_before_the_first_run_makes_a_table_that_takes_the_next(tmp_path):
    async def scenario():
        bench = Workbench(tmp_path / "runs.csv", **SHORT)
        bench.files.save()
        assert bench.files.status.value == f"{tmp_path / 'runs.csv'} holds 0 runs"
        assert load_csv(tmp_path / "runs.csv") == []
        await bench.run()
        assert len(load_csv(tmp_path / "runs.csv")) == 1

    working(scenario)


def test_saving_after_a_clear_loses_nothing(tmp_path):
    async def scenario():
        bench = Workbench(str(tmp_path / "runs.csv"), **SHORT)
        await bench.run()
        bench.clear()
        bench.controls["seed"].value = 1
        await bench.run()
        assert [run.settings.seed for run in load_csv(tmp_path / "runs.csv")] == [0, 1]

    working(scenario)


@pytest.mark.parametrize("content", ["name,age\nAda,36\n", "half a li", "run,error\n0", "\0\0\0"])
def test_another_file_is_left_alone(tmp_path, content):
    path = tmp_path / "mine.csv"
    path.write_text(content)

    async def scenario():
        bench = Workbench(str(path), **SHORT)
        await bench.run()
        bench.files.save()
        assert str(path) in bench.files.status.value and "left as it is" in bench.files.status.value
        assert len(bench.runs) == 1

    working(scenario)
    assert path.read_text() == content


def test_a_place_that_cannot_be_written_or_named_gets_a_sentence(tmp_path):
    async def scenario():
        bench = Workbench(**SHORT)
        bench.files.save()
        assert bench.files.status.value == "no file is named: write a name such as runs.csv"
        for place, said in ((tmp_path, "cannot be read: "), (tmp_path / "no" / "x.csv", "cannot be written: ")):
            bench.files.path.value = str(place)
            bench.files.save()
            assert said in bench.files.status.value
        bench.files.path.value = str(tmp_path / "later.csv")
        bench.files.load()
        assert "is not there yet: Save makes it" in bench.files.status.value

    working(scenario)


def test_without_a_table_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def scenario():
        bench = Workbench(**SHORT)
        await bench.run()
        assert isinstance(bench, TrajectoryLab) and bench.files.auto.value is False

    working(scenario)
    assert list(tmp_path.iterdir()) == []
