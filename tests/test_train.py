"""The outer loop: it learns, keeps its outer steps apart, and its records survive a round trip through a table."""

import gc
import itertools
import math
from dataclasses import asdict, replace

import psutil
import pytest
import torch

from metalib.problems import PROBLEMS
from metalib.settings import Settings
from metalib.tables import load_csv, save_csv
from metalib.train import Diverged, Record, Run, complete, explain, outer_step, train
from metalib.versions import VERSIONS


def without_seconds(records):
    return [replace(record, seconds=0.0) for record in records]


@pytest.mark.parametrize("start_rate", [0.01, 0.1, 0.4])
def test_the_functional_version_reaches_the_closed_form_optimum(start_rate):
    """Within 5% at K = 1, averaged over the last hundred outer steps, since each draws its own data."""
    records = complete(Settings(start_rate=start_rate, outer_steps=300)).records
    end = sum(record.rates["rate"] for record in records[-100:]) / 100
    assert end == pytest.approx(100 / 208, rel=0.05)
    assert end == pytest.approx(PROBLEMS["one weight"].best_rate(1), rel=0.05)


def test_a_record_says_what_happened():
    record = next(train(Settings(problem="classifier", rate="per tensor", inner_steps=3, start_rate=0.2)))
    assert record.step == 0
    assert record.rates == pytest.approx({n: 0.2 for n in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")})
    assert len(record.inner_losses) == 3 and all(0 < loss < 2 for loss in record.inner_losses)
    assert 0 < record.meta_loss < 2
    assert set(record.meta_gradient) == {f"log_rate.{name}" for name in record.rates}
    assert all(isinstance(g, float) and g != 0 for g in record.meta_gradient.values())
    assert 0 < record.seconds < 60


def test_the_first_adam_step_moves_the_log_rate_by_the_meta_rate():
    first, second = itertools.islice(train(Settings(start_rate=0.1, meta_rate=0.03)), 2)
    assert first.meta_gradient["log_rate"] < 0
    assert math.log(second.rates["rate"] / first.rates["rate"]) == pytest.approx(0.03, rel=1e-4)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_seed_gives_the_same_run_and_another_seed_another(problem):
    def run(seed):
        return without_seconds(complete(Settings(problem=problem, seed=seed, inner_steps=2, outer_steps=5)).records)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_weights_start_anew_or_are_carried_over():
    def first_losses(carry):
        run = complete(Settings(problem="one weight", inner_steps=5, outer_steps=30, carry=carry))
        return [record.inner_losses[0] for record in run.records]

    assert min(first_losses(False)) > 0.5  # m (1 - 2)² with m near 1, every time
    assert first_losses(True)[-1] < 1e-6  # w has reached 2


def test_carried_weights_are_cut_off_from_the_last_outer_step():
    """The meta-gradient of a later outer step is that of an inner loop from its own, given weights."""
    records = complete(Settings(carry=True, inner_steps=2, outer_steps=4, dtype="float64")).records
    generator = torch.Generator().manual_seed(0)
    w = 1.0
    for record in records:
        x = torch.randn(100, dtype=torch.float64, generator=generator)
        h, rate = 2 * (x**2).mean().item(), record.rates["rate"]
        by_rate = -2 * h**2 * (1 - rate * h) ** 3 * (w - 2) ** 2
        assert record.meta_gradient["log_rate"] == pytest.approx(rate * by_rate, rel=1e-9)
        w = 2 + (1 - rate * h) ** 2 * (w - 2)


def test_meta_parameters_beyond_all_bounds_end_with_a_sentence():
    """Adam's mean of squares overflows before anything else does."""
    settings = Settings(seed=3, start_rate=1e-12, outer_steps=5, meta_rate=1e6, dtype="float64", carry=True)
    assert "diverged" in complete(settings).error


def live_tensors():
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


@pytest.mark.parametrize("carry", [False, True])
def test_memory_does_not_grow_over_two_thousand_outer_steps(carry):
    """Neither tensors (graph nodes keep theirs alive) nor the process: 2,000 steps, the records thrown away.

    What the process holds now and not its peak, which an earlier test may have set far above anything that grows here.
    """
    loop = train(Settings(rate="from loss", meta_rate=1e-4, inner_steps=5, outer_steps=2_000, carry=carry))
    for _ in itertools.islice(loop, 200):
        pass
    tensors, before = live_tensors(), psutil.Process().memory_info().rss
    assert sum(1 for _ in loop) == 1_800
    assert live_tensors() <= tensors
    grown = (psutil.Process().memory_info().rss - before) / 2**20
    print(f"memory grew by {grown:.1f} MiB over 1,800 outer steps")
    assert grown < 16


def test_the_computing_is_done_on_one_thread_and_the_rest_is_not(monkeypatch):
    threads, seen = torch.get_num_threads(), []

    def watched(*arguments):
        seen.append(torch.get_num_threads())
        return outer_step(*arguments)

    monkeypatch.setattr("metalib.train.outer_step", watched)
    torch.set_num_threads(2)
    try:
        for _ in train(Settings(outer_steps=2)):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert seen == [1, 1]


def test_stopping_is_breaking_out_of_a_for_loop():
    for record in train(Settings(outer_steps=100_000)):
        if record.step == 3:
            break
    assert record.step == 3


def test_what_a_version_raises_comes_out_as_it_is():
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        next(train(Settings(version="in_place")))
    run = complete(Settings(version="in_place"))
    assert run.records == []
    assert run.error == "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."


def test_divergence_is_recorded_and_explained():
    loop = train(Settings(start_rate=1000.0, inner_steps=20))
    record = next(loop)
    assert not math.isfinite(record.meta_loss)
    with pytest.raises(Diverged, match="outer step 0 diverged at rate 1e\\+03.*smaller start rate"):
        next(loop)
    run = complete(Settings(start_rate=1000.0, inner_steps=20))
    assert len(run.records) == 1 and run.error.startswith("outer step 0 diverged")


def test_explain_leaves_out_the_hint_on_anomaly_mode():
    run = complete(Settings(version="in_place_clone", problem="classifier", inner_steps=2))
    assert "modified by an inplace operation" in run.error and "Hint" not in run.error
    assert explain(KeyError("x")) == "KeyError: 'x'"


def same(a, b):
    """Equal, where nan equals nan."""
    return repr(a) == repr(b)


@pytest.mark.parametrize("rate", ["constant", "per tensor", "from loss"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_goes_to_csv_and_back_without_loss(tmp_path, version, rate):
    settings = Settings(
        problem="classifier", version=version, rate=rate, inner_steps=3, outer_steps=3, truncation=2, carry=True
    )
    run = complete(settings)
    save_csv([run], tmp_path / "run.csv")
    assert load_csv(tmp_path / "run.csv") == [run]


def test_runs_of_different_kinds_share_a_table(tmp_path):
    odd = Record(0, {"rate": math.inf}, (1e-300, -0.0), math.nan, {"a": None, "b": -math.inf}, 0.1 + 0.2)
    runs = [
        complete(Settings(outer_steps=2)),
        complete(Settings(version="in_place")),
        complete(Settings(rate="from loss", inner_steps=12, outer_steps=1)),
        Run(Settings(), [odd], error='a sentence with "quotes", commas\nand a new line'),
    ]
    save_csv(runs, tmp_path / "runs.csv")
    assert same(load_csv(tmp_path / "runs.csv"), runs)


def test_a_run_from_a_machine_with_a_gpu_can_be_read_here(tmp_path):
    run = Run(Settings(device="cuda"), complete(Settings(outer_steps=2)).records)
    save_csv([run], tmp_path / "run.csv")
    assert load_csv(tmp_path / "run.csv") == [run]


def test_the_table_is_tidy(tmp_path):
    save_csv([complete(Settings(outer_steps=2, seed=7))], tmp_path / "run.csv")
    header, *rows = (tmp_path / "run.csv").read_text().splitlines()
    assert len(rows) == 2
    columns = header.split(",")
    assert {"run", "error", "step", "rates.rate", "meta_gradient.log_rate", "inner_losses.0"} <= set(columns)
    assert {f"settings.{name}" for name in asdict(Settings())} <= set(columns)
    assert dict(zip(columns, rows[1].split(","), strict=True))["settings.seed"] == "7"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "run,error,step\n0,,1\n",
        "",
    ],
)
def test_a_foreign_table_gets_a_sentence(tmp_path, text):
    path = tmp_path / "other.csv"
    path.write_text(text)
    if not text:
        assert load_csv(path) == []
        return
    with pytest.raises(ValueError, match="other.csv, line \\d: not a table of runs that save_csv wrote"):
        load_csv(path)


def test_a_damaged_cell_gets_a_sentence(tmp_path):
    path = tmp_path / "run.csv"
    save_csv([complete(Settings(outer_steps=3))], path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2].replace("'one weight'", "'two weights'"), lines[3]]))
    with pytest.raises(ValueError, match="line 3: .*unknown problem 'two weights'"):
        load_csv(path)


def written(path, *runs):
    """A table's lines, each with its end."""
    save_csv(runs, path)
    return path.read_bytes().decode().splitlines(keepends=True)


def test_a_table_with_a_byte_order_mark_can_be_read(tmp_path):
    run = complete(Settings(outer_steps=2))
    lines = written(tmp_path / "run.csv", run)
    (tmp_path / "run.csv").write_text("".join(lines), encoding="utf-8-sig", newline="")
    assert load_csv(tmp_path / "run.csv") == [run]


def first_cell_twice(line):
    return f"{line.partition(',')[0]},{line}"


CUT = "the file ends in the middle of this line"
FEW = "fewer cells than the first line has names"
DAMAGES = {
    "a cell too many": (first_cell_twice, "more cells than the first line has names"),
    "a cell too few": (lambda line: line.partition(",")[2], FEW),
    "cut in the middle": (lambda line: line[: len(line) // 2], FEW),
    "cut in the last cell": (lambda line: line[:-5], CUT),
    "cut before its end": (lambda line: line.rstrip(), CUT),
    "another setting": (lambda line: line.replace("functional", "detach"), "run 0 has other settings, or another"),
    "another error": (lambda line: line.replace("0,,", "0,it broke,"), "run 0 has other settings, or another error"),
    "a quote that is never closed": (lambda line: '"' + line, FEW),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_named_and_told_what_is_wrong_with_it(tmp_path, damage):
    spoil, sentence = DAMAGES[damage]
    lines = written(tmp_path / "run.csv", complete(Settings(outer_steps=3)))
    (tmp_path / "run.csv").write_text("".join([*lines[:3], spoil(lines[3])]), newline="")
    with pytest.raises(ValueError) as caught:
        load_csv(tmp_path / "run.csv")
    assert str(caught.value).startswith(f"{tmp_path / 'run.csv'}, line 4: {sentence}")
    assert "\n" not in str(caught.value)


def test_the_line_is_counted_in_the_file_also_below_a_cell_of_two_lines(tmp_path):
    lines = written(tmp_path / "run.csv", Run(Settings(), error="one\ntwo"), complete(Settings(outer_steps=2)))
    (tmp_path / "run.csv").write_text("".join([*lines[:-1], first_cell_twice(lines[-1])]), newline="")
    with pytest.raises(ValueError, match="run.csv, line 5: more cells"):
        load_csv(tmp_path / "run.csv")
