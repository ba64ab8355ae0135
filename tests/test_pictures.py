"""Words and pictures: sentences say what the numbers say, and pixels show what the runs did."""

import io
import math

import numpy as np
import pytest
from matplotlib.lines import Line2D
from PIL import Image

from metalib.axes import COLUMNS, limits, thin, widen
from metalib.describe import best_rate, expect_error, is_cut, label, labels, sentence
from metalib.figures import COLOURS, STYLES, lines, show
from metalib.grid import VERDICT_COLOURS, verdict_rows, verdict_table
from metalib.referee import VERDICTS
from metalib.report import fold
from metalib.settings import Settings
from metalib.train import Record, Run, complete
from metalib.trajectory import TrajectoryPlot, look, trajectories


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
    assert trajectories(runs).text.count("\n") == 6
    plot = TrajectoryPlot()
    plot.png(runs)
    colours = {line.get_ydata()[0]: line.get_color() for line in plot.lines if line.axes is plot.left}
    assert colours == {0.05 * (i + 1): COLOURS[i % 7] for i in range(2, 9)}, "as when each was the last"
    (legend,) = plot.figure.legends
    assert [line.get_color() for line in legend.get_lines()[:7]] == list(colours.values())


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
    older = [run_of([0.3, 0.2, 0.1]), run_of([0.2] * 50, problem="classifier")]
    live, growing = TrajectoryPlot(), Run(whole.settings)
    frames = []
    for record in whole.records:
        growing.records.append(record)
        frames.append(live.png([*older, growing], running=True))
    assert len(set(frames)) == 100
    assert live.png([*older, growing]) == TrajectoryPlot().png([*older, whole])


def test_a_frame_of_many_records_hands_few_points_to_matplotlib_and_only_those_of_the_last_run(monkeypatch):
    drawn = []
    draw = Line2D.draw

    def counted(line, renderer):
        if line.get_animated():
            drawn.append(len(line.get_xdata()))
        draw(line, renderer)

    monkeypatch.setattr(Line2D, "draw", counted)
    runs = [noisy(10_000, seed) for seed in range(7)]
    plot = TrajectoryPlot()
    plot.png(runs, running=True)
    assert len(drawn) == 2 * 7 and max(drawn) <= 4 * COLUMNS
    drawn.clear()
    runs[-1].records += noisy(12_000, 6).records[10_000:]
    plot.png(runs, running=True)
    assert len(drawn) == 2 and max(drawn) <= 4 * COLUMNS


def test_a_run_that_has_not_grown_is_not_looked_at_again(monkeypatch):
    looked = []
    monkeypatch.setattr("metalib.trajectory.look", lambda run: looked.append(run.settings.seed) or look(run))
    runs, plot = [run_of([0.1] * 9, seed=seed) for seed in range(3)], TrajectoryPlot()
    for _ in range(3):
        runs[-1].records.append(runs[0].records[0])
        plot.png(runs, running=True)
    assert looked == [0, 1, 2, 2, 2]


def test_a_run_that_grows_below_another_is_drawn_anew():
    runs, plot = [run_of([0.1, 0.2]), run_of([0.3] * 9)], TrajectoryPlot()
    plot.png(runs)
    runs[0].records.append(run_of([0.1, 0.2, 0.15]).records[-1])
    assert plot.png(runs) == TrajectoryPlot().png(runs)


def noisy(steps, seed):
    """Rates that wander and losses that jump about, as in a long run."""
    numbers = np.random.default_rng(seed)
    rates = 0.1 * np.exp(np.cumsum(numbers.normal(0, 0.01, steps)))
    return run_of(rates.tolist(), numbers.lognormal(0, 1, steps).tolist(), seed=seed, outer_steps=12_000)


def test_a_thinned_line_looks_like_the_whole(monkeypatch):
    """Three pixels in a thousand may differ. Were each fourth point drawn instead, it would be fifty."""
    runs = [noisy(10_000, seed) for seed in range(2)]
    few = pixels(TrajectoryPlot().png(runs))
    monkeypatch.setattr("metalib.axes.COLUMNS", 10**9)
    every = pixels(TrajectoryPlot().png(runs))
    assert (np.abs(few - every).max(axis=2) > 48).mean() < 3e-3 < (every < 200).any(axis=2).mean()


def test_a_thinned_line_keeps_its_ends_its_peaks_and_its_gaps():
    values = np.full(10_000, 0.5)
    values[[0, 1234, 5678, 9999]] = 0.4, 9.0, 0.01, 0.6
    values[7000:7100] = math.nan
    steps, kept = thin(range(10_000), values)
    assert len(kept) <= 4 * COLUMNS and np.all(np.diff(steps) > 0)
    assert {0: 0.4, 1234: 9.0, 5678: 0.01, 9999: 0.6}.items() <= dict(zip(steps, kept, strict=True)).items()
    assert np.isnan(kept[(steps >= 7020) & (steps < 7080)]).all() and not np.isnan(kept[steps < 6980]).any()
    assert np.array_equal(thin(range(3), [1.0, 2.0, 3.0])[1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("rates", [[0.2], [0.2, math.inf]])
def test_a_single_point_is_seen(rates):
    losses = [0.5, math.nan][: len(rates)]
    picture = pixels(trajectories([run_of(rates, losses)]).png)[:280]
    assert min(of_colour(picture[:, half], COLOURS[0]) for half in (slice(0, 480), slice(480, 960))) > 10


def test_numbers_at_the_ends_of_float64_can_be_drawn():
    huge, tiny = [1e307, 1.7e308, 1e300], [5e-324, 1e-300, 1e-299]
    for values in (huge, tiny, huge + tiny, [1e308] * 5):
        assert trajectories([run_of(values, losses=values)]).png.startswith(b"\x89PNG")
    for inner in ((1e-10, 1.7e308), (5e-324, 1.0), (1e300, 1.7e308)):
        low, high = widen(inner)
        assert 0 < low < high < math.inf


def test_each_best_rate_has_its_own_dashes_and_says_what_it_is_best_at():
    plot = TrajectoryPlot()
    plot.png([run_of([0.1] * 9, inner_steps=steps) for steps in (1, 2, 3, 4, 5, 10, 20)])
    bests = [line for line in plot.left.lines if line.get_label().startswith("best rate on average")]
    assert bests[-1].get_label() == "best rate on average, one weight, K = 20: 0.388"
    assert len({repr(line._unscaled_dash_pattern) for line in bests}) == 7


def test_rates_of_one_run_differ_in_style_and_each_is_its_own_line():
    run = complete(Settings(problem="classifier", rate="per tensor", outer_steps=9))
    plot = TrajectoryPlot()
    plot.png([run])
    rates, loss = plot.lines[:4], plot.lines[4]
    assert [line.get_linestyle() for line in rates] == ["-", "--", "-.", ":"] and loss.get_linestyle() == "-"
    for line, name in zip(rates, run.records[0].rates, strict=True):
        assert line.get_ydata().tolist() == [record.rates[name] for record in run.records]
    assert loss.get_ydata().tolist() == [record.meta_loss for record in run.records]


def test_equal_settings_get_a_number_in_legend_and_text():
    runs = [run_of([0.1] * 3), run_of([0.2] * 3, problem="classifier"), run_of([0.1] * 2), run_of([0.1])]
    assert labels(runs)[2:] == ["functional, K = 1, start 0.1 (2)", "functional, K = 1, start 0.1 (3)"]
    assert trajectories(runs).text.splitlines()[3].startswith("functional, K = 1, start 0.1 (3): rate 0.1")
    plot = TrajectoryPlot()
    plot.png(runs)
    (legend,) = plot.figure.legends
    assert [text.get_text() for text in legend.get_texts()][:4] == labels(runs)
    assert labels([runs[0]] * 9)[-1].endswith("(9)"), "counted over all runs, not only over those that are shown"


def test_the_axes_span_what_was_done_and_while_it_runs_what_will_be():
    runs, plot = [run_of([0.1] * 40), run_of([0.1] * 3, outer_steps=500)], TrajectoryPlot()

    def span(**how):
        plot.png(runs, **how)
        return [axes.get_xlim()[1] for axes in plot.axes]

    assert span(running=True) == pytest.approx([510, 510])
    assert span() == pytest.approx([40.8, 40.8])


def test_an_empty_plot_invites():
    assert of_colour(pixels(TrajectoryPlot().png([])), "#FFF8E7") > 500


def test_lines_and_verdicts_draw_what_they_are_given():
    picture = lines([1, 2, 5], {"a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 1.0]}, "text", xlabel="x", ylabel="y", log="y")
    assert all(of_colour(pixels(picture.png), colour) > 100 for colour in COLOURS[:2])
    assert picture.text == "text"
    other = lines([1, 2, 5], {"a": [1.0, 2.0, 3.0], "c": [3.0, 2.0, 1.0]}, "text", xlabel="x", ylabel="y", log="y")
    assert other.png != picture.png, "the names are in the picture"


def test_curves_differ_in_style_and_not_only_in_colour():
    """A rising and a falling line of the same length: the second has gaps, so it leaves fewer pixels."""
    rising = [float(i) for i in range(200)]
    picture = pixels(lines(range(200), {"a": rising, "b": rising[::-1]}, "", xlabel="x", ylabel="y").png)
    assert of_colour(picture, COLOURS[1]) < 0.85 * of_colour(picture, COLOURS[0])
    assert len(set(STYLES)) == 4


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
    assert seen[0].data == picture.png and seen[0].metadata == {"alt": picture.text}
    assert capsys.readouterr().out == picture.text + "\n"


def test_long_lines_are_folded_at_a_blank():
    text = "repair  " + "word " * 30 + "\n" + "short  line\n\n" + "x" * 120
    found = fold(text, 8).split("\n")
    assert max(map(len, found[:2])) <= 100 and found[1].startswith("        word")
    assert " ".join(" ".join(found[:2]).split()) == " ".join(text.split("\n")[0].split())
    assert found[2:] == ["short  line", "", "x" * 120]


def test_whole_steps_get_whole_ticks(monkeypatch):
    drawn = []
    monkeypatch.setattr("metalib.figures.picture", lambda figure, text: drawn.append(figure))
    lines([1, 2, 5, 8], {"a": [1, 2, 3, 4]}, "", xlabel="K", ylabel="y")
    assert all(float(tick).is_integer() for tick in drawn[0].axes[0].get_xticks())
