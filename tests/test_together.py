"""Many outer loops at once are the outer loops one by one."""

import math
from dataclasses import replace

import pytest

from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.settings import Settings
from metalib.together import complete_together, train_together
from metalib.train import complete

RUNS = [(1, 0, 0.1, 5, 0.05), (5, 1, 0.3, 7, 0.02), (12, 2, 0.01, 3, 0.1), (3, 0, 0.5, 6, 0.05)]


def settings(**common):
    return [
        Settings(inner_steps=k, seed=seed, start_rate=rate, outer_steps=outer, meta_rate=meta, **common)
        for k, seed, rate, outer, meta in RUNS
    ]


def numbers(record):
    return [*record.rates.values(), *record.inner_losses, record.meta_loss, *record.meta_gradient.values()]


@pytest.mark.parametrize("carry", [False, True])
@pytest.mark.parametrize("rate", list(RATES))
@pytest.mark.parametrize("problem", list(PROBLEMS))
def test_the_records_are_those_of_train(problem, rate, carry):
    for dtype, rel in (("float64", 1e-10), ("float32", 1e-3)):
        runs = settings(problem=problem, rate=rate, carry=carry, dtype=dtype)
        for together, alone in zip(complete_together(runs), map(complete, runs), strict=True):
            assert together.settings == alone.settings and together.error == alone.error == ""
            assert len(together.records) == len(alone.records)
            for ours, theirs in zip(together.records, alone.records, strict=True):
                assert (ours.step, ours.rates.keys()) == (theirs.step, theirs.rates.keys())
                assert numbers(ours) == pytest.approx(
                    numbers(theirs), rel=rel, abs=1e-12 if dtype == "float64" else 1e-6
                )


def test_one_float32_meta_gradient_agrees_to_a_millionth():
    runs = settings(problem="classifier")
    for together, alone in zip(complete_together(runs), map(complete, runs), strict=True):
        assert numbers(together.records[0]) == pytest.approx(numbers(alone.records[0]), rel=1e-5, abs=1e-7)


def test_runs_grow_step_by_step_and_stopping_is_leaving_the_loop():
    for runs in train_together(settings()):
        if len(runs[1].records) == 4:
            break
    assert [len(run.records) for run in runs] == [4, 4, 3, 4]


def test_a_run_that_diverges_ends_with_its_sentence_and_the_others_go_on():
    bad = Settings(inner_steps=100, start_rate=5e4, outer_steps=4, dtype="float64")
    good = replace(bad, start_rate=0.1)
    assert len(list(train_together([bad]))) == 1  # nothing is left to go on
    first, second = complete_together([bad, good])
    assert len(first.records) == 1 and "outer step 0 diverged at rate 5e+04" in first.error
    assert not math.isfinite(first.records[0].meta_loss)
    assert first.error == complete(bad).error
    assert [r.meta_loss for r in second.records] == pytest.approx(
        [r.meta_loss for r in complete(good).records], rel=1e-10
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"problem": "classifier"}, "problem differs .'one weight' and 'classifier'.: run these one by one"),
        ({"rate": "from loss"}, "rate differs"),
        ({"version": "detach"}, "version differs"),
        ({"carry": True}, "carry differs"),
    ],
)
def test_runs_that_are_not_one_program_are_refused(changed, sentence):
    with pytest.raises(ValueError, match=sentence):
        complete_together([Settings(), Settings(**changed)])


@pytest.mark.parametrize("common", [{"version": "first_order"}, {"inner_steps": 5, "truncation": 2}])
def test_only_the_functional_version_runs_together(common):
    with pytest.raises(ValueError, match="only the functional version, not truncated"):
        complete_together([Settings(**common)] * 2)


def test_no_settings():
    with pytest.raises(ValueError, match="no settings are given"):
        complete_together([])
