"""The lab without a page: what its buttons do, told by the widgets' values."""

import asyncio
import base64
import gc
import time

import pytest
import torch
from ipywidgets import HTML

from metalib.controls import device_note
from metalib.lab import TrajectoryLab
from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.settings import devices
from metalib.tables import load_csv, save_csv
from metalib.versions import VERSIONS


def in_a_loop(scenario):
    """Run an async test body as a notebook cell would: inside a running event loop."""
    return asyncio.run(scenario())


async def until(condition, seconds=60):
    """Give the loop turns until something has happened."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"nothing has happened in {seconds} s"
        await asyncio.sleep(0)


def test_a_run_is_recorded_drawn_and_told():
    async def scenario():
        lab = TrajectoryLab(outer_steps=20)
        before = lab.image.value
        run = await lab.run()
        assert lab.runs == [run] and len(run.records) == 20
        assert lab.image.value != before
        assert lab.status.value == "functional, K = 1, start 0.1: rate 0.1 → 0.256 in 20 outer steps (best rate 0.481)"
        assert (lab.bar.value, lab.bar.max, lab.bar.bar_style) == (20, 20, "success")
        assert not lab.go.disabled and lab.halt.disabled

    in_a_loop(scenario)


def test_the_controls_are_what_runs():
    async def scenario():
        lab = TrajectoryLab(outer_steps=3, dtype="float64")
        chosen = {
            "version": "buffer_rebind", "problem": "classifier", "rate": "per tensor", "inner_steps": 4,
            "device": "cpu", "outer_steps": 2, "start_rate": 0.3, "meta_rate": 0.01, "seed": 5, "carry": True,
        }  # fmt: skip
        assert set(lab.controls) == set(chosen)
        for name, value in chosen.items():
            lab.controls[name].value = value
        run = await lab.run()
        assert all(getattr(run.settings, name) == value for name, value in chosen.items())
        assert run.settings.dtype == "float64" and len(run.records) == 2

    in_a_loop(scenario)


def test_the_controls_show_the_presets_and_the_versions_symptom():
    lab = TrajectoryLab(version="data_write", inner_steps=50, start_rate=0.02)
    assert lab.controls["version"].value == "data_write" and "behind autograd" in lab.hint.value
    assert lab.controls["inner_steps"].value == 50 and lab.controls["start_rate"].value == 0.02
    lab.controls["version"].value = "in_place"
    assert "on a leaf" in lab.hint.value


def test_stop_ends_the_run_and_keeps_it():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        lab.press_run()
        await until(lambda: lab.runs and len(lab.runs[0].records) >= 5)
        assert lab.go.disabled and not lab.halt.disabled and lab.controls["version"].disabled
        lab.halt.click()
        steps = len(lab.runs[0].records)
        await until(lambda: not lab.running)
        assert len(lab.runs[0].records) <= steps + 1
        assert lab.status.value.startswith("stopped: functional") and lab.bar.bar_style == "warning"
        assert not lab.go.disabled and not lab.controls["version"].disabled

    in_a_loop(scenario)


def test_the_loop_gives_way_after_every_outer_step():
    async def scenario():
        lab = TrajectoryLab(outer_steps=200)
        turns = 0
        lab.press_run()
        await until(lambda: lab.running)
        while lab.running:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 200

    in_a_loop(scenario)


@pytest.mark.parametrize(("version", "message"), [("in_place", "leaf Variable"), ("buffer_published", "element 0")])
def test_a_version_that_raises_is_told_and_not_raised(version, message):
    async def scenario():
        lab = TrajectoryLab(version=version)
        before = lab.image.value
        run = await lab.run()
        assert run.records == [] and message in run.error
        assert message in lab.status.value and "RuntimeError" in lab.status.value
        assert lab.bar.bar_style == "danger" and lab.image.value != before
        assert not lab.go.disabled

    in_a_loop(scenario)


def test_a_diverging_run_is_told():
    async def scenario():
        lab = TrajectoryLab(start_rate=1000.0, inner_steps=20)
        run = await lab.run()
        assert len(run.records) == 1 and "diverged" in lab.status.value

    in_a_loop(scenario)


def test_a_cut_version_draws_its_line_and_says_so():
    async def scenario():
        lab = TrajectoryLab(version="data_write", outer_steps=10)
        await lab.run()
        assert lab.status.value.endswith("no gradient reaches the rate (best rate 0.481)")

    in_a_loop(scenario)


@pytest.mark.parametrize(("control", "value"), [("start_rate", -1.0), ("start_rate", float("nan")), ("meta_rate", 0.0)])
def test_a_choice_that_cannot_be_gets_a_sentence_and_no_run(control, value):
    async def scenario():
        lab = TrajectoryLab(outer_steps=2)
        kept = await lab.run()
        lab.controls[control].value = value
        assert await lab.run() is None
        assert lab.status.value.startswith(f"{control} is {value!r}: give a number above 0")
        assert lab.runs == [kept] and not lab.running

    in_a_loop(scenario)


def test_an_unforeseen_error_is_told_too(monkeypatch):
    def broken(settings):
        raise KeyError("surprise")

    monkeypatch.setattr("metalib.lab.train", broken)

    async def scenario():
        lab = TrajectoryLab()
        run = await lab.run()
        assert run.error == "KeyError: 'surprise'" and "surprise" in lab.status.value and not lab.running

    in_a_loop(scenario)


def test_a_picture_that_cannot_be_drawn_does_not_lock_the_lab(monkeypatch):
    async def scenario():
        lab = TrajectoryLab(version="in_place")
        monkeypatch.setattr(lab.plot, "png", lambda runs, running: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await lab.run()
        assert not lab.running and "RuntimeError" in lab.status.value

    in_a_loop(scenario)


def test_pressing_run_twice_starts_one_run():
    async def scenario():
        lab = TrajectoryLab(outer_steps=5)
        lab.press_run()
        lab.press_run()
        await until(lambda: lab.runs and not lab.running)
        await asyncio.sleep(0.05)
        assert len(lab.runs) == 1

    in_a_loop(scenario)


def test_clear_forgets_what_is_finished_and_keeps_what_runs():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        empty = lab.image.value
        lab.press_run()
        await until(lambda: lab.runs and lab.runs[0].records)
        lab.wipe.click()
        await asyncio.sleep(0.05)
        assert len(lab.runs) == 1 and lab.running
        lab.halt.click()
        await until(lambda: not lab.running)
        lab.wipe.click()
        await asyncio.sleep(0.05)
        assert lab.runs == [] and lab.image.value == empty and lab.status.value == "ready"

    in_a_loop(scenario)


def test_clear_keeps_the_run_that_runs_and_not_an_older_one():
    async def scenario():
        lab = TrajectoryLab(outer_steps=2)
        await lab.run()
        lab.controls["outer_steps"].value = 10_000
        lab.press_run()
        await until(lambda: len(lab.runs) == 2 and lab.runs[1].records)
        lab.wipe.click()
        await asyncio.sleep(0.05)
        assert [run.settings.outer_steps for run in lab.runs] == [10_000]
        lab.halt.click()
        await until(lambda: not lab.running)

    in_a_loop(scenario)


def test_a_stop_that_came_too_late_does_not_stop_the_next_run():
    async def scenario():
        lab = TrajectoryLab(outer_steps=3)
        lab.stop()
        assert len((await lab.run()).records) == 3

    in_a_loop(scenario)


def test_a_stop_before_the_run_has_begun_counts():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        lab.press_run()
        lab.stop()
        await until(lambda: lab.status.value.startswith("stopped"))
        assert lab.status.value == "stopped before the first outer step" and lab.runs == [] and not lab.running
        coming = lab.run()
        lab.stop()
        assert await coming is None and lab.runs == []

    in_a_loop(scenario)


def test_a_new_lab_stops_a_run_of_an_old_one_that_has_not_begun():
    async def scenario():
        old = TrajectoryLab(outer_steps=10_000)
        old.press_run()
        TrajectoryLab()
        await until(lambda: old.status.value.startswith("stopped"))
        assert old.runs == []

    in_a_loop(scenario)


def test_pressing_run_again_takes_a_stop_back():
    async def scenario():
        lab = TrajectoryLab(outer_steps=3)
        lab.press_run()
        lab.stop()
        lab.press_run()
        await until(lambda: lab.runs and not lab.running)
        await asyncio.sleep(0.05)
        assert [len(run.records) for run in lab.runs] == [3]

    in_a_loop(scenario)


def test_a_second_run_that_is_refused_does_not_take_back_the_stop_of_the_first():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        lab.press_run()
        await until(lambda: lab.runs and lab.runs[0].records)
        lab.stop()
        assert await lab.run() is None
        await until(lambda: not lab.running)
        assert len(lab.runs) == 1 and len(lab.runs[0].records) < 10_000

    in_a_loop(scenario)


def test_fewer_inner_steps_than_the_labs_truncation_get_a_sentence_that_the_slider_can_follow():
    async def scenario():
        lab = TrajectoryLab(inner_steps=6, truncation=4, outer_steps=2)
        lab.controls["inner_steps"].value = 3
        assert await lab.run() is None
        told = "truncation is 4, more than the inner steps, 3: choose at least 4 inner steps, or a smaller truncation"
        assert lab.status.value == told
        lab.controls["inner_steps"].value = 4
        assert (await lab.run()).settings.truncation == 4

    in_a_loop(scenario)


def test_after_its_event_loop_was_closed_a_lab_says_what_to_do_and_can_be_cleared():
    made = []

    async def scenario():
        made.append(TrajectoryLab(outer_steps=2))
        await made[0].run()

    in_a_loop(scenario)
    (lab,) = made
    lab.go.click()
    assert "await lab.run()" in lab.status.value and len(lab.runs) == 1
    lab.wipe.click()
    assert lab.runs == [] and lab.status.value == "ready"


@pytest.mark.parametrize(("frames", "drawn"), [(1e-9, 2), (1e9, 6)])
def test_so_many_frames_a_second_are_drawn(monkeypatch, frames, drawn):
    """Of five records: the first and the end, or each and the end."""
    monkeypatch.setattr("metalib.lab.FRAMES_A_SECOND", frames)

    async def scenario():
        lab, count = TrajectoryLab(outer_steps=5, inner_steps=300), 0  # steps slow beside a frame

        def counted(*runs):
            nonlocal count
            count += 1
            return b"drawn in no time"

        lab.plot.png = counted
        await lab.run()
        assert count == drawn

    in_a_loop(scenario)


def test_slow_drawing_takes_a_fifth_of_the_time_at_most(monkeypatch):
    """But for the first frame and the last."""
    monkeypatch.setattr("metalib.lab.FRAMES_A_SECOND", 1e9)

    async def scenario():
        lab, count = TrajectoryLab(outer_steps=200), 0

        def slow(*runs):
            nonlocal count
            count += 1
            time.sleep(0.02)
            return b"drawn slowly"

        lab.plot.png = slow
        began = time.perf_counter()
        await lab.run()
        assert 2 <= count <= 2 + (time.perf_counter() - began) / 0.1

    in_a_loop(scenario)


def test_what_is_written_is_text_and_never_html(monkeypatch):
    def broken(settings):
        raise KeyError("<b>&")

    monkeypatch.setattr("metalib.lab.train", broken)
    monkeypatch.setattr("metalib.controls.symptom", lambda name: "a < b: `w -= <i>`")
    monkeypatch.setattr("metalib.controls.device_note", lambda: "cuda <u> is missing")

    async def scenario():
        lab = TrajectoryLab()
        await lab.run()
        assert "&lt;b&gt;&amp;" in lab.status.value and "<b>" not in lab.status.value
        assert lab.hint.value == "<b>functional</b>: a &lt; b: <code>w -= &lt;i&gt;</code>"
        assert "cuda &lt;u&gt; is missing" in repr([child.value for child in written(lab.panel)])

    in_a_loop(scenario)


def written(box):
    """Every HTML widget in a box, at any depth."""
    for child in getattr(box, "children", ()):
        yield from [child] if isinstance(child, HTML) else written(child)


def test_a_run_has_its_whole_length_before_it_and_after_stop_no_more_than_was_done():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        lab.press_run()
        await until(lambda: lab.runs and lab.runs[0].records)
        assert lab.plot.left.get_xlim()[1] >= 10_000
        lab.halt.click()
        await until(lambda: not lab.running)
        assert lab.plot.left.get_xlim()[1] == pytest.approx(1.02 * len(lab.runs[0].records))

    in_a_loop(scenario)


def test_pictures_arrive_while_it_runs():
    async def scenario():
        lab = TrajectoryLab(outer_steps=3)
        seen = []
        lab.image.observe(lambda change: seen.append(len(lab.runs[0].records)), "value")
        await lab.run()
        assert seen[0] == 1 and seen[-1] == 3

    in_a_loop(scenario)


def test_a_new_lab_stops_the_loop_of_an_old_one():
    async def scenario():
        old = TrajectoryLab(outer_steps=10_000)
        old.press_run()
        await until(lambda: old.runs and old.runs[0].records)
        TrajectoryLab()
        await until(lambda: not old.running)
        assert old.status.value.startswith("stopped")

    in_a_loop(scenario)


def test_a_cancelled_cell_keeps_the_run_and_unlocks():
    async def scenario():
        lab = TrajectoryLab(outer_steps=10_000)
        cell = asyncio.ensure_future(lab.run())
        await until(lambda: lab.runs and lab.runs[0].records)
        cell.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cell
        assert not lab.running and lab.runs[0].records

    in_a_loop(scenario)


def test_without_an_event_loop_pressing_run_says_what_to_do():
    lab = TrajectoryLab()
    lab.go.click()
    assert "await lab.run()" in lab.status.value and lab.runs == []


def test_the_cell_shows_a_widget_a_picture_and_a_fixed_text():
    lab = TrajectoryLab()
    bundle = lab._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.panel.model_id
    assert base64.b64decode(bundle["image/png"]) == lab.image.value
    assert bundle["text/plain"] == "TrajectoryLab: run this cell in Jupyter to use it"


def test_only_devices_of_this_machine_can_be_chosen_and_the_others_say_why():
    lab = TrajectoryLab()
    known = devices()
    assert list(lab.controls["device"].options) == [name for name, reason in known.items() if not reason]
    assert all(f"{name} cannot be chosen: {reason}" in device_note() for name, reason in known.items() if reason)


def test_every_version_and_problem_and_rate_model_runs_in_the_lab():
    async def scenario():
        lab = TrajectoryLab(outer_steps=1, inner_steps=2)
        for control in ("version", "problem", "rate"):
            for value in lab.controls[control].options:
                lab.controls[control].value = value
                assert await lab.run() is not None
        return lab

    lab = in_a_loop(scenario)
    assert len(lab.runs) == len(VERSIONS) + len(PROBLEMS) + len(RATES) and lab.picture().png.startswith(b"\x89PNG")


def test_the_runs_go_to_a_table(tmp_path):
    async def scenario():
        lab = TrajectoryLab(outer_steps=3)
        await lab.run()
        lab.controls["version"].value = "in_place"
        await lab.run()
        return lab

    lab = in_a_loop(scenario)
    save_csv(lab.runs, tmp_path / "runs.csv")
    assert load_csv(tmp_path / "runs.csv") == lab.runs


def test_labs_that_are_gone_leave_nothing_behind():
    from metalib import lab as module

    lab = TrajectoryLab()
    lab.panel.close_all()
    del lab
    gc.collect()
    assert len(module._LABS) == 0


def test_a_goal_is_shown_and_its_being_reached_is_told():
    async def scenario():
        lab = TrajectoryLab("02", version="in_place_no_grad", outer_steps=2)
        assert lab.aim.value.startswith("☐") and "raising and running" in lab.aim.value
        await lab.run()
        lab.controls["problem"].value = "classifier"
        lab.controls["version"].value = "in_place_clone"
        await lab.run()
        lab.controls["inner_steps"].value = 2
        assert lab.aim.value.startswith("☐")
        await lab.run()
        assert lab.aim.value.startswith("☑") and "runs at K = 1 and raises at K = 2" in lab.aim.value
        lab.clear()
        assert lab.aim.value.startswith("☐")
        assert TrajectoryLab().aim.value == ""

    in_a_loop(scenario)


def test_the_live_picture_has_a_text():
    async def scenario():
        lab = TrajectoryLab(outer_steps=2)
        assert lab.image.tooltip == "no run yet"
        await lab.run()
        assert lab.image.tooltip == lab.status.value
        lab.clear()
        assert lab.image.tooltip == "no run yet"

    in_a_loop(scenario)


def test_an_unknown_setting_is_a_sentence():
    with pytest.raises(ValueError, match="unknown setting 'inner_step': choose one of 'problem', .*'inner_steps'"):
        TrajectoryLab(inner_step=5)


def test_an_unknown_goal_is_a_sentence():
    with pytest.raises(ValueError, match="unknown goal 'win': choose one of"):
        TrajectoryLab("win")
    with pytest.raises(ValueError, match="unknown goal tensor.*: choose one of"):
        TrajectoryLab(torch.ones(2))
