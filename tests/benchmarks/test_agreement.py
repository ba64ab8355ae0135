"""The benchmarks' own contestants agree, so that a change of the engine that breaks them is seen without the peers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from contestants import HOMES, PLAIN, SWEEPS, make, make_sweep  # noqa: E402
from tasks import OUTER_RATE, TASKS, sweep  # noqa: E402


@pytest.mark.parametrize("name", [name for name in HOMES if name.startswith("metalib")])
@pytest.mark.parametrize("task", [name for name in TASKS if name != "784-256-10"])
def test_metalib_gives_the_plain_loops_meta_gradient(name, task):
    ours, plain = (make(who, TASKS[task](), 5, "float64").meta_gradient() for who in (name, PLAIN))
    assert ours[0] == pytest.approx(plain[0], rel=1e-10)
    assert ours[1] == pytest.approx(plain[1], rel=1e-10)


@pytest.mark.parametrize("name", [name for name in SWEEPS if name.startswith("metalib")])
def test_a_sweep_at_once_gives_what_its_runs_give(name):
    ours, plain = (make_sweep(who, sweep(4), 3, "float64").meta_gradient() for who in (name, PLAIN))
    assert ours[0] == pytest.approx(plain[0], rel=1e-10)
    assert ours[1] == pytest.approx(plain[1], rel=1e-10)


def test_a_metalib_step_is_a_step_of_adam():
    """While the gradient hardly changes, Adam moves by its rate a step, whatever the gradient's size."""
    ours = make("metalib", TASKS["classifier"](), 2, "float64")
    before = ours.values["rate"]
    for _ in range(3):
        ours.step()
    assert abs(ours.values["rate"] - before) == pytest.approx(3 * OUTER_RATE, rel=1e-5)
