"""Words and pictures: sentences say what the numbers say, and pixels show what the runs did."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from metalib.axes import limits
from metalib.describe import best_rate, expect_error, is_cut, label, sentence
from metalib.figures import COLOURS, lines, show
from metalib.grid import VERDICT_COLOURS, verdict_rows, verdict_table
from metalib.referee import VERDICTS
from metalib.settings import Settings
from metalib.train import Record, Run, complete
from metalib.trajectory import TrajectoryPlot, trajectories


def run_of(rates, losses=None, error="", gradient=-1.0, **settings):
    """A run with just these rates, one a record."""
    records = [
        Record(step, {"rate": rate}, (1.0,), losses[step] if losses else 0.5, {"log_rate": gradient}, 0.001)
        for step, rate in enumerate(rates)
    ]
    return Run(Settings(**{"outer_steps": 100} | settings), records, error)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def of_colour(image, colour):
    """How many pixels have about this colour."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int((np.abs(image - wanted).max(axis=2) < 6).sum())


def test_label_says_what_is_not_the_default():
    assert label(Settings()) == "functional, K = 1, start 0.1"
    odd = Settings(problem="classifier", seed=3, meta_rate=0.01, carry=True, rate="per tensor", inner_steps=2)
    assert label(odd) == (
        "functional, K = 2, start 0.1, classifier, per tensor, meta rate 0.01, seed 3, weights carried over"
    )


def test_sentences():
    assert sentence(run_of([0.1, 0.2, 0.3456])) == (
        "functional, K = 1, start 0.1: rate 0.1 → 0.346 in 3 outer steps (best rate 0.481)"
    )
    assert sentence(run_of([0.1] * 3, gradient=None, problem="classifier")).endswith(
        "rate 0.1 → 0.1 in 3 outer steps; no gradient reaches the rate"
    )
    assert sentence(run_of([0.1], error="It broke.", problem="classifier")).endswith(
        "in 1 outer step. It ended early. It broke."
    )
    assert sentence(Run(Settings(), error="RuntimeError: no")) == "functional, K = 1, start 0.1: RuntimeError: no"
    assert sentence(Run(Settings())).endswith("no outer step was run")


def test_a_sentence_names_each_of_several_rates():
    run = complete(Settings(problem="classifier", rate="per tensor", outer_steps=2))
    assert "rate fc1.weight 0.1 → 0.105; fc1.bias 0.1 → 0.105" in sentence(run)


def test_best_rate_is_only_given_where_the_formula_holds():
    assert best_rate(Settings()) == pytest.approx(0.4808, abs=1e-4)
    assert best_rate(Settings(carry=True)) is None
    assert best_rate(Settings(rate="from loss")) is None
    assert best_rate(Settings(problem="classifier")) is None


def test_is_cut():
    assert is_cut(run_of([0.1], gradient=None))
    assert not is_cut(run_of([0.1], gradient=0.0))
    assert not is_cut(Run(Settings()))
    partly = run_of([0.1, 0.1])
    partly.records[1].meta_gradient["other"] = None
    assert not is_cut(partly)


def test_expect_error_prints_class_and_fragment(capsys):
    with expect_error(ValueError, "too large"):
        raise ValueError("17 is too large for a cat")
    assert capsys.readouterr().out == "ValueError: … too large …\n"
    with expect_error(ValueError, "17 is too large"):
        raise ValueError("17 is too large.")
    assert capsys.readouterr().out == "ValueError: 17 is too large\n"


def test_expect_error_insists():
    with pytest.raises(AssertionError, match="nothing was raised"), expect_error(ValueError, "x"):
        pass
    with pytest.raises(AssertionError, match="expected a message with 'x', got: y"), expect_error(ValueError, "x"):
        raise ValueError("y")
    with pytest.raises(KeyError), expect_error(ValueError, "x"):
        raise KeyError("x")


def test_a_run_is_drawn_in_its_colour_and_its_rate_where_it_belongs():
    picture = pixels(trajectories([run_of([0.1] * 100)]).png)
    line = np.abs(picture[:, :480] - np.array([0x00, 0x72, 0xB2])).max(axis=2) < 24
    rows = np.nonzero(line.sum(axis=1) > 300)[0]  # a flat line over the left plot
    assert 1 <= len(rows) <= 4
    higher = pixels(trajectories([run_of([0.4] * 100, start_rate=0.1)]).png)
    line = np.abs(higher[:, :480] - np.array([0x00, 0x72, 0xB2])).max(axis=2) < 24
    assert np.nonzero(line.sum(axis=1) > 300)[0].max() < rows.min()


def test_runs_are_overlaid_in_different_colours():
    runs = [run_of([0.1 * (i + 1)] * 100) for i in range(3)]
    picture = pixels(trajectories(runs).png)
    assert all(of_colour(picture, colour) > 300 for colour in COLOURS[:3])
    assert of_colour(picture, COLOURS[3]) < 50
    assert trajectories(runs).text.count("\n") == 2


def test_the_last_seven_runs_are_shown_and_keep_their_colours():
    runs = [run_of([0.05 * (i + 1)] * 100) for i in range(9)]
    picture = pixels(trajectories(runs).png)
    assert all(of_colour(picture, colour) > 300 for colour in COLOURS)
    alone = pixels(trajectories(runs[:7] + [Run(Settings(outer_steps=100))]).png)
    assert of_colour(alone, COLOURS[1]) > 300, "the second run has kept the second colour"
    assert trajectories(runs).text.count("\n") == 6


def test_a_run_that_raised_leaves_a_mark_and_a_message():
    quiet, raised = Run(Settings(version="in_place")), Run(Settings(version="in_place"), error="RuntimeError: leaf")
    without, with_mark = (pixels(trajectories([run]).png) for run in (quiet, raised))
    assert of_colour(with_mark, COLOURS[0]) > of_colour(without, COLOURS[0]) + 30
    assert of_colour(with_mark, "#8B0000") > 50 > of_colour(without, "#8B0000")


def test_an_error_text_is_drawn_as_it_is():
    """Not as mathematics: a stray dollar sign must not stop the picture."""
    assert trajectories([Run(Settings(), error="RuntimeError: cost $x_1$ and $y^{2$")]).png.startswith(b"\x89PNG")


def test_the_mark_stands_where_the_run_died():
    plot = TrajectoryPlot()
    plot.png([run_of([0.1, 0.2, 0.3, math.inf], error="it diverged")])
    marks = [(*line.get_xdata(), *line.get_ydata()) for line in plot.left.lines if line.get_marker() == "X"]
    assert (2, 0.3) in marks


def test_one_explosion_does_not_flatten_the_other_runs():
    assert limits([1.0] * 9 + [2.0], 0.1, 1.0) == (1.0, 2.0)
    assert limits([1.0] * 9 + [1e30, math.inf, math.nan, 0.0], 0.1, 1.0) == (1.0, 1e6)
    assert limits([math.nan], 0.1, 1.0) == (0.1, 1.0)


def test_a_cut_run_says_so_in_the_picture():
    cut, alive = (pixels(trajectories([run_of([0.1] * 9, gradient=g)]).png) for g in (None, -1.0))
    assert of_colour(cut, "#FFF8E7") > 500 > of_colour(alive, "#FFF8E7")


def test_what_a_logarithmic_axis_cannot_show_is_left_out():
    odd = run_of([0.1, math.inf, 0.2, math.nan, 1e30], losses=[0.5, 0.0, math.nan, math.inf, 1e300])
    assert trajectories([odd, run_of([0.1] * 100)]).png.startswith(b"\x89PNG")


def test_a_live_plot_ends_as_the_static_picture():
    """Blitting frame by frame, through growing axes, or all at once: the same pixels where both have the same axes."""
    whole = run_of([0.01 * 1.05**i for i in range(100)], losses=[0.9**i for i in range(100)])
    live, growing = TrajectoryPlot(), Run(whole.settings)
    for record in whole.records:
        growing.records.append(record)
        frame = live.png([growing])
    live.limits = ((1.0, 1.0), (1.0, 1.0))  # forget the grown axes, keep everything else
    frame = live.png([growing])
    assert np.array_equal(pixels(frame), pixels(TrajectoryPlot().png([whole])))


def test_an_empty_plot_invites():
    assert of_colour(pixels(TrajectoryPlot().png([])), "#FFF8E7") > 500


def test_lines_and_verdicts_draw_what_they_are_given():
    picture = lines([1, 2, 5], {"a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 1.0]}, "text", xlabel="x", ylabel="y", log="y")
    assert all(of_colour(pixels(picture.png), colour) > 100 for colour in COLOURS[:2])
    assert picture.text == "text"


def test_the_table_of_verdicts():
    rows = verdict_rows(["in_place_clone", "first_order"])
    assert rows["in_place_clone"] == ["right", "right", "right", "right", "raises", "raises"]
    picture = verdict_table(rows | {"detach": ["cut"] * 6})
    assert picture.text.splitlines()[1] == "first_order: right, wrong, wrong, right, wrong, wrong"
    table = pixels(picture.png)
    share = {verdict: of_colour(table, colour) for verdict, colour in VERDICT_COLOURS.items()}
    assert share["right"] > share["cut"] * 0.9 > 1000 and share["wrong"] > 1.7 * share["raises"] > 1000
    assert share["independent"] < 300
    assert set(VERDICT_COLOURS) == set(VERDICTS)


def test_show_displays_the_picture_and_prints_its_text(capsys, monkeypatch):
    seen = []
    monkeypatch.setattr("metalib.figures.display", seen.append)
    picture = trajectories([run_of([0.1])])
    show(picture)
    assert seen[0].data == picture.png and seen[0].alt == picture.text
    assert capsys.readouterr().out == picture.text + "\n"
