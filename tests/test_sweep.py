"""One table, however the runs were made: one by one, as one tensor program, in a pool, on a cluster."""

import math
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest
import torch
from dask import distributed

from metalib.settings import Settings, devices
from metalib.sweep import Sweep, grid, sweep
from metalib.train import complete

SHORT = Settings(outer_steps=6)
MIXED = grid(SHORT, version=("functional", "first_order", "in_place", "data_write"), inner_steps=(1, 3), seed=(0, 1))


def timeless(run):
    return replace(run, records=[replace(record, seconds=0.0) for record in run.records])


def one_by_one(settings):
    return [timeless(complete(each)) for each in settings]


def close(ours, theirs, tolerance):
    assert (ours.settings, len(ours.records)) == (theirs.settings, len(theirs.records))
    for a, b in zip(ours.records, theirs.records, strict=True):
        assert a.meta_loss == pytest.approx(b.meta_loss, rel=tolerance)
        assert a.rates == pytest.approx(b.rates, rel=tolerance)


def test_a_grid_holds_every_combination_the_last_varying_fastest():
    found = grid(SHORT, inner_steps=(1, 2), seed=range(3))
    assert [(each.inner_steps, each.seed) for each in found] == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert {each.outer_steps for each in found} == {6} and grid(SHORT) == [SHORT]


def test_without_an_executor_runs_share_a_tensor_program_where_they_can():
    settings = grid(replace(SHORT, dtype="float64", problem="classifier"), inner_steps=(1, 2, 5), seed=range(4))
    found = sweep(settings)
    for ours, theirs in zip(found.runs, one_by_one(settings), strict=True):
        close(ours, theirs, 1e-10)
    assert found.left == [] and found.notes == []


def test_versions_that_cannot_share_one_are_run_one_by_one():
    found, theirs = sweep(MIXED), one_by_one(MIXED)
    assert [run.settings for run in found.runs] == MIXED
    for ours, run in zip(found.runs, theirs, strict=True):
        if run.settings.version == "functional":
            close(ours, run, 1e-5)
        else:
            assert timeless(ours) == run
    assert all("leaf Variable" in run.error for run in found.runs if run.settings.version == "in_place")


def test_the_table_has_a_row_a_run():
    table = sweep(MIXED).table()
    assert len(table) == len(MIXED)
    functional, raising = table[0], next(row for row in table if row["version"] == "in_place")
    assert functional["outer_steps_done"] == 6 and 0.1 < functional["rates.rate"] < 0.2 and functional["error"] == ""
    assert raising["outer_steps_done"] == 0 and raising["meta_loss"] is None and "rates.rate" not in raising


def test_a_pool_of_processes_gives_the_same_to_the_last_digit():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = sweep(MIXED, pool)
    assert [timeless(run) for run in found.runs] == one_by_one(MIXED)


def test_progress_is_told_as_it_goes():
    told = []
    with ThreadPoolExecutor(1) as pool:
        sweep(MIXED[:4], pool, progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]
    told.clear()
    sweep(grid(SHORT, version=("functional", "item"), seed=range(2)), progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0 and len(told) == SHORT.outer_steps + 2


@pytest.mark.parametrize("pool", [False, True])
def test_an_interrupt_keeps_what_is_done_and_the_rest_can_be_gone_on_with(pool):
    def stop(share):
        if share >= 5 / 9:
            raise KeyboardInterrupt

    settings = [replace(each, version="first_order") for each in grid(SHORT, seed=range(9))]
    executor = ThreadPoolExecutor(1) if pool else None
    found = sweep(settings, executor, progress=stop)
    if pool:
        executor.shutdown()
    assert len(found.runs) == 5 and len(found.left) == 4
    assert found.notes == ["interrupted: 5 of 9 runs are done"]
    rest = sweep(found.left)
    assert sorted([*found.runs, *rest.runs], key=lambda run: run.settings.seed)[8].settings.seed == 8
    assert [timeless(run) for run in [*found.runs, *rest.runs]] == one_by_one(settings)


def test_ctrl_c_in_the_middle_of_a_run_keeps_what_is_done():
    settings = [replace(SHORT, version="first_order"), replace(SHORT, version="first_order", outer_steps=100_000)]
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    found = sweep(settings)
    assert len(found.runs) == 1 and found.left == settings[1:]


def test_a_pool_whose_worker_dies_loses_no_result():
    settings = [replace(each, version="first_order", outer_steps=60) for each in grid(SHORT, seed=range(12))]
    killed = []

    def kill(share):
        if not killed and share >= 2 / 12:
            victim = next(iter(pool._processes.values()))
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = sweep(settings, pool, progress=kill)
    assert killed and [timeless(run) for run in found.runs] == one_by_one(settings)
    assert len(found.notes) == 1 and "the pool failed" in found.notes[0]


def test_a_run_that_diverges_is_a_run_with_an_error():
    found = sweep(grid(Settings(inner_steps=20, outer_steps=3), start_rate=(0.1, 1e6)))
    assert found.runs[0].error == "" and "diverged" in found.runs[1].error
    assert not math.isfinite(found.table()[1]["meta_loss"])


@pytest.mark.parametrize("settings", [3, [3], [Settings(), "one weight"], "one weight", torch.tensor(3)])
def test_what_is_no_list_of_settings_gets_a_sentence(settings):
    with pytest.raises(ValueError, match="give a list of Settings"):
        sweep(settings)


def test_a_value_that_cannot_be_is_named():
    with pytest.raises(ValueError, match="inner_steps is 0"):
        grid(SHORT, inner_steps=(1, 0))
    with pytest.raises(ValueError, match="unknown setting 'inner_step': choose one of .*'inner_steps'"):
        grid(SHORT, inner_step=(1, 2))


@pytest.mark.parametrize("values", ["functional", 3, None])
def test_a_single_value_gets_a_sentence(values):
    with pytest.raises(ValueError, match=r"give the values to try, such as version=\("):
        grid(SHORT, version=values)


class Failing(ThreadPoolExecutor):
    """A pool that takes some work and then breaks, or whose workers all fail."""

    def __init__(self, takes):
        super().__init__(1)
        self.takes = takes

    def submit(self, work, each):
        if each.seed >= self.takes:
            raise BrokenExecutor("no worker is left")
        return super().submit(self.fail if each.seed % 2 else work, each)

    def fail(self, each):
        raise OSError("the worker lost its disk")


@pytest.mark.parametrize(("takes", "cause"), [(2, "no worker is left"), (9, "the worker lost its disk")])
def test_what_a_pool_cannot_do_is_done_here(takes, cause):
    settings = [replace(each, version="first_order") for each in grid(SHORT, seed=range(4))]
    with Failing(takes) as pool:
        found = sweep(settings, pool)
    assert [timeless(run) for run in found.runs] == one_by_one(settings)
    assert len(found.notes) == 1 and cause in found.notes[0]


class Careless(ThreadPoolExecutor):
    """Work goes in, and something else comes out."""

    def submit(self, work, each):
        return super().submit(len, "run")


def test_a_pool_that_gives_no_runs_or_is_shut_down_or_is_none_of_ours_loses_nothing():
    settings = [replace(each, version="first_order") for each in grid(SHORT, seed=range(2))]
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    for pool, cause in (
        (Careless(1), "it gave 3 and not the run"),
        (closed, "cannot schedule new futures after shutdown"),
        (Executor(), "NotImplementedError"),
    ):
        found = sweep(settings, pool)
        assert [timeless(run) for run in found.runs] == one_by_one(settings)
        assert found.notes == [f"the pool failed ({cause}): 2 runs were made in this process instead"]


def test_what_is_no_executor_and_what_cannot_hear_progress_get_a_sentence():
    with pytest.raises(ValueError, match="executor is 3: give one of concurrent.futures, or none"):
        sweep([SHORT], 3)
    with pytest.raises(ValueError, match="progress is 3: give a function of one number"):
        sweep([SHORT], None, 3)


def test_a_device_that_is_not_here_is_told_before_the_first_run_and_by_a_pool_as_a_run_with_an_error():
    lacking = next(name for name, reason in devices().items() if reason)
    settings, told = [SHORT, replace(SHORT, device=lacking)], []
    with pytest.raises(ValueError, match=f"device '{lacking}' cannot be used: .* Choose one of 'cpu'"):
        sweep(settings, progress=told.append)
    assert told == []
    with ThreadPoolExecutor(1) as pool:
        found = sweep(settings, pool)
    assert len(found.runs[0].records) == 6 and found.notes == [] and found.runs[1].records == []
    assert f"ValueError: device '{lacking}' cannot be used" in found.runs[1].error


def test_nothing_to_do_is_done():
    assert sweep([]) == Sweep([], {}, [])


def test_a_dask_cluster_gives_the_same_and_survives_the_death_of_a_worker():
    """Two workers in processes of their own, one of them killed in the middle."""
    settings = [replace(each, version="first_order", outer_steps=60) for each in grid(SHORT, seed=range(24))]
    killed = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill(share):
            if share >= 2 / 24 and not killed:
                victim = next(iter(cluster.workers.values())).process.pid
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        began = time.monotonic()
        found = sweep(settings, client.get_executor(), progress=kill)
        print(f"{len(found.runs)} runs in {time.monotonic() - began:.1f} s, worker {killed} killed after the second")
    assert killed and found.left == [] and found.notes == []
    assert [timeless(run) for run in found.runs] == one_by_one(settings)
