"""The rest of what may be given: odd steps to the doctor, odd lists and executors to `sweep`, any press in the lab.

Hypothesis makes the values up, as in test_bad_input.py, where EXAMPLES is explained. With 2,000 the lab is pressed by
500 machines, up to 12 times each.
"""

import asyncio
import contextlib
import html
import math
import os
import shutil
import tempfile
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from test_bad_input import METAS, STEPS, W, anything, or_a_sentence
from traitlets import TraitError

from metalib.diagnosis import Diagnosis
from metalib.doctor import diagnose
from metalib.figures import Picture
from metalib.lab import TrajectoryLab
from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.referee import referee
from metalib.report import VERDICTS, Undecided
from metalib.settings import Settings
from metalib.sweep import Sweep, sweep
from metalib.tables import load_csv, unknown
from metalib.train import complete
from metalib.versions import VERSIONS
from metalib.workbench import Workbench

EXAMPLES = int(os.environ.get("EXAMPLES", "25"))
many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES < 100
)

# The doctor.


class Callable:
    """A step that is an object, with state of its own."""

    def __init__(self):
        self.calls, self.weight = [], torch.nn.Parameter(torch.ones(2, dtype=torch.float64))

    def __call__(self, meta):
        self.calls.append(1)
        (self.weight**2).sum().backward()
        return ((self.weight - meta["rate"] * self.weight.grad) ** 2).sum()


def raises_at(place, error):
    """A step of two updates that raises at one of five places."""

    def step(meta, place=place):
        def here(number):
            if number == place:
                raise error("here" * 3)

        here(0)
        w = torch.ones(3, dtype=torch.float64, requires_grad=True)
        for k in (1, 2):
            loss = ((w - 3) ** 4).sum()
            here(k)
            (g,) = torch.autograd.grad(loss, w, create_graph=True)
            w = w - meta["rate"] * g
        here(3)
        w.register_hook(lambda grad: here(4))
        return (w**2).sum()

    return step


def unrolled(break_at="", steps=2):
    """A right step, or one that is broken in one way."""

    def step(meta):
        rate = meta["rate"]
        w = torch.tensor([1.0, 0.5], dtype=torch.float64, requires_grad=True)
        if break_at == "rate as number":
            rate = rate.item() if rate.numel() == 1 else rate.detach()
        for _ in range(steps):
            loss = ((w**2 - 3) ** 2).sum()
            (g,) = torch.autograd.grad(loss, w, create_graph=break_at != "no create_graph")
            if break_at == "data":
                w.data = w.data - rate.detach() * g.detach()
            elif break_at == "no_grad":
                with torch.no_grad():
                    w = w - rate * g
                w.requires_grad_()
            elif break_at == "numpy":
                w = w - torch.from_numpy((rate * g).detach().numpy())
            else:
                w = w - rate * g
        if break_at == "tensor()":
            w = torch.tensor(w.tolist(), dtype=torch.float64, requires_grad=True)
        return ((w**2 - 3) ** 2).sum()

    step.right = not break_at or (break_at == "no create_graph" and steps == 1)
    return step


def mutates(what):
    def step(meta):
        loss = (W - meta["rate"] * 3) ** 2
        if what == "meta":
            meta.clear()
        elif what == "value":
            with torch.no_grad():
                meta["rate"].add_(1)
        elif what == "data":
            meta["rate"].data = meta["rate"].data + 1
        elif what == "resize":
            meta["rate"].data = torch.zeros(7, dtype=torch.float64)
        elif what == "requires_grad":
            meta["rate"].requires_grad_(False)
        elif what == "add":
            meta["new"] = torch.ones(())
        elif what == "grad":
            meta["rate"].grad = torch.ones_like(meta["rate"])
        elif what == "in place":
            meta["rate"].add_(1)
        elif what == "grad mode":
            torch.set_grad_enabled(False)
        elif what == "default dtype":
            torch.set_default_dtype(torch.float64)
        return loss

    return step


ERRORS = [RuntimeError, KeyError, ZeroDivisionError, StopIteration, AssertionError, ValueError, NotImplementedError]
BREAKS = ["", "no create_graph", "rate as number", "data", "no_grad", "numpy", "tensor()"]
MUTATIONS = ["meta", "value", "data", "resize", "requires_grad", "add", "grad", "in place", "grad mode"]
MUTATIONS += ["default dtype"]
SCALE = W.clone()
ODD = {
    "list": lambda meta: [meta["rate"]],
    "dict": lambda meta: {"loss": meta["rate"]},
    "empty": lambda meta: torch.empty(0, dtype=torch.float64) * meta["rate"],
    "one number in a matrix": lambda meta: ((W - meta["rate"]) ** 2).reshape(1, 1),
    "half": lambda meta: (meta["rate"] ** 2).half(),
    "bool": lambda meta: meta["rate"] > 0,
    "inf": lambda meta: meta["rate"] / 0,
    "nan gradient": lambda meta: (meta["rate"] - meta["rate"].detach()).sqrt(),
    "constant": lambda meta: torch.tensor(2.0, dtype=torch.float64),
    "a leaf": lambda meta: torch.tensor(2.0, dtype=torch.float64, requires_grad=True),
    "meta itself": lambda meta: meta["rate"],
    "sparse": lambda meta: (meta["rate"] * torch.ones(2, dtype=torch.float64)).to_sparse(),
    "meta device": lambda meta: torch.ones((), device="meta", dtype=torch.float64),
    "inference": lambda meta: torch.inference_mode()(lambda: meta["rate"] * 2)(),
    "vmap": lambda meta: torch.func.vmap(lambda x: x * meta["rate"])(torch.ones(3, dtype=torch.float64)).sum(),
    "func.grad": lambda meta: torch.func.grad(lambda w: (w * meta["rate"]) ** 2)(W),
    "sum": lambda meta: sum(p.sum() for p in meta.values()) ** 2,
    "keys": lambda meta: sum(len(name) for name in meta) * meta["rate"],
    "kink": lambda meta: (meta["rate"] - meta["rate"].detach()).abs(),
    "huge": lambda meta: meta["rate"] * 1e300 * 1e300,
    "tiny": lambda meta: meta["rate"] * 1e-320,
    "numpy": lambda meta: meta["rate"].detach().numpy().sum(),
    "prints": lambda meta: print("x") or meta["rate"] ** 2,
    "exits": lambda meta: exec("raise KeyError('from a string')"),
    "recursion": lambda meta: ODD["recursion"](meta),
    "backward": lambda meta: (meta["rate"] ** 2).backward() or meta["rate"] ** 2,
    "lambda default": lambda meta, scale=SCALE: meta["rate"] * scale.mul_(2),
}
NO_STEP = [None, 3, "step", [], torch.nn.Linear(1, 1), torch.sin, len, print, dict, Callable, object()]

steps = st.one_of(
    st.sampled_from(list(STEPS.values())),
    st.sampled_from(list(ODD.values())),
    st.builds(raises_at, st.integers(0, 4), st.sampled_from(ERRORS)),
    st.builds(unrolled, st.sampled_from(BREAKS), st.integers(1, 3)),
    st.builds(mutates, st.sampled_from(MUTATIONS)),
    st.builds(Callable),
    st.sampled_from(NO_STEP),
)


def several():
    return {name: torch.tensor(0.05) for name in ("rate", "other", "third")}


MORE = {
    "several": several,
    "many numbers": lambda: {"rate": torch.full((30,), 0.05)},
    "per weight": lambda: {"rate": torch.tensor([0.01, 0.02], dtype=torch.float64)},
    "transposed": lambda: {"rate": torch.full((2, 3), 0.1).t()},
    "overlapping": lambda: {"rate": torch.full((1,), 0.1).expand(2)},
    "halves of one": lambda: dict(zip(("rate", "again"), torch.full((2,), 0.1).unbind(), strict=True)),
    "one and its view": lambda: (lambda t: {"rate": t[0], "again": t})(torch.full((2,), 0.1)),
    "bfloat16": lambda: {"rate": torch.tensor(0.1, dtype=torch.bfloat16)},
    "zero": lambda: {"rate": torch.tensor(0.0)},
    "huge": lambda: {"rate": torch.tensor(1e30)},
    "tiny": lambda: {"rate": torch.tensor(1e-30)},
    "an odd name": lambda: {"rate": torch.tensor(0.1), "": torch.tensor(0.1), "ä b": torch.tensor(0.2)},
    "a name that is no string": lambda: {"rate": torch.tensor(0.1), 3: torch.tensor(0.1)},
    "quantized": lambda: {"rate": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)},
    "bool": lambda: {"rate": torch.tensor(True)},
    "a buffer": lambda: {"rate": torch.nn.Buffer(torch.tensor(0.1))},
    "number": lambda: {"rate": torch.tensor(0.1)},
}
KINDS = METAS | MORE


def same(left, right):
    if left is None or right is None:
        return left is right
    return torch.allclose(left, right, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:ComplexHalf")
@many
@given(step=steps, meta=st.one_of(st.just("number"), st.sampled_from(sorted(KINDS))))
def test_the_doctor(step, meta):
    """It agrees with the referee, leaves everything as it was, and says what it says in whole sentences."""
    given_, state = KINDS[meta](), torch.get_rng_state()
    before = _copied(given_)
    found = or_a_sentence(lambda: diagnose(step, given_), (Undecided,))
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32
    assert torch.equal(torch.get_rng_state(), state) and _unchanged(before, given_)
    if found is None:
        return
    assert isinstance(found, Diagnosis) and found.verdict in VERDICTS and str(found) and repr(found)
    assert found.verdict == "right" or found.cause
    if hasattr(step, "right") and meta in ("number", "a view", "not a leaf", "per weight"):
        assert (found.verdict == "right") == step.right and (step.right or found.location is not None)
    report = or_a_sentence(lambda: referee(step, given_), (Undecided,))
    torch.set_default_dtype(torch.float32)  # the referee puts random numbers back, and nothing else
    if report is not None and report.verdict != "raises" and not isinstance(step, Callable):
        assert found.verdict == report.verdict
        if meta != "many numbers":  # there the doctor claims one number, along a direction
            assert all(same(found.claimed[name], report.claimed[name]) for name in given_)


def _copied(meta):
    if not isinstance(meta, dict):
        return meta
    dense = {name: p for name, p in meta.items() if isinstance(p, torch.Tensor) and not p.is_meta}
    return {name: (p.detach().clone(), p.requires_grad, _grad(p)) for name, p in dense.items() if not p.is_quantized}


def _grad(p):
    return p.grad if p.is_leaf else None


def _unchanged(before, meta):
    if not isinstance(meta, dict):
        return before == meta
    return all(
        torch.equal(torch.nan_to_num(kept.to_dense()), torch.nan_to_num(meta[name].detach().to_dense()))
        and meta[name].requires_grad == wants
        and _grad(meta[name]) is grad
        for name, (kept, wants, grad) in before.items()
    )


# Sweeps.


class Odd(Executor):
    """A pool that runs work at once, and misbehaves from one piece of work on."""

    def __init__(self, how, after):
        self.how, self.left, self.shut = how, after, False

    def submit(self, work, /, *args, **kwargs):
        self.left -= 1
        future = Future()
        if self.left >= 0 or self.how == "fine":
            future.set_result(work(*args, **kwargs))
        elif self.how == "broken":
            raise BrokenExecutor("no worker is left")
        elif self.how == "shut down":
            raise RuntimeError("cannot schedule new futures after shutdown")
        elif self.how == "cancelled":
            future.cancel()
            future.set_running_or_notify_cancel()
        elif self.how == "nothing":
            future.set_result(None)
        else:
            future.set_exception({"unpicklable": TypeError("cannot pickle this"), "lost": OSError("disk")}[self.how])
        return future


short = st.builds(
    lambda truncated, **chosen: Settings(**chosen, truncation=min(truncated, chosen["inner_steps"]) or None),
    truncated=st.integers(0, 2),
    problem=st.sampled_from(sorted(PROBLEMS)[::-1][:2]),
    version=st.one_of(st.just("functional"), st.sampled_from(sorted(VERSIONS))),
    rate=st.sampled_from(sorted(RATES)),
    inner_steps=st.integers(1, 3),
    outer_steps=st.integers(1, 2),
    start_rate=st.sampled_from([0.1, 1e-12, 1e6]),
    seed=st.integers(0, 2),
    dtype=st.sampled_from(["float32", "float64"]),
    carry=st.booleans(),
)
elsewhere = Settings(device="cuda", outer_steps=1)
lists = st.one_of(
    st.lists(short, max_size=4),
    st.lists(short, max_size=2).map(lambda few: few * 2),
    st.lists(short, max_size=2).map(tuple),
    st.lists(short, max_size=2).map(iter),
    st.lists(short, max_size=2).map(lambda few: [*few, elsewhere]),
    short,
    st.lists(st.one_of(short, anything), max_size=3),
    anything,
)
executors = st.one_of(
    st.none(),
    st.builds(
        Odd,
        st.sampled_from(["fine", "broken", "shut down", "cancelled", "nothing", "unpicklable", "lost"]),
        st.integers(0, 4),
    ),
    st.sampled_from([3, "pool", object(), [], Executor()]),
)


@many
@given(lists, executors, st.sampled_from([None, "listen", "interrupt", 3]))
def test_a_sweep(chosen, executor, progress):
    """Every run of the list is done once, in its place, with the numbers that it has alone; or it is left, and told."""
    chosen = list(chosen) if hasattr(chosen, "__next__") else chosen
    told, listed = [], [chosen] if isinstance(chosen, Settings) else chosen

    def hear(share):
        told.append(share)
        if progress == "interrupt":
            raise KeyboardInterrupt

    found = or_a_sentence(lambda: sweep(chosen, executor, hear if isinstance(progress, str) else progress))
    if found is None:
        return
    assert isinstance(found, Sweep)
    assert sorted(map(repr, [*(run.settings for run in found.runs), *found.left])) == sorted(map(repr, listed))
    assert told == sorted(told) and (not found.left or found.notes)
    assert len(found.table()) == len(found.runs)
    for place, run in found.done.items():
        alone = complete(listed[place])
        assert (run.settings, len(run.records)) == (listed[place], len(alone.records))
        assert bool(run.error) == bool(alone.error)
        for ours, theirs in zip(run.records, alone.records, strict=True):
            rough = 1e-4 if run.settings.dtype == "float32" else 1e-8
            assert ours.meta_loss == pytest.approx(theirs.meta_loss, rel=rough, abs=rough, nan_ok=True)


# The lab.

PNG = b"\x89PNG"


class Undrawn:
    def png(self, runs, running=False):
        return PNG


@contextlib.contextmanager
def undrawn():
    """Pictures take nearly all of the time."""
    with (
        patch("metalib.lab.TrajectoryPlot", Undrawn),
        patch("metalib.compare.compared", lambda found: Picture(PNG, f"{len(found.runs)} runs")),
    ):
        yield


TABLES = ["", " ", "no/such/place.csv", ".", "a\0b", "x" * 300]
NUMBERS = [0.1, 0.0, -0.0, -1.0, 1e-12, 1e-13, 1e6, 1e7, 1e300, math.inf, -math.inf, math.nan, 5e-324]
WHOLE = [1, 2, 3, 0, -1, 20, 21, 10**4, 10**6, 2**32 - 1, 2**40]
VALUES = {
    "version": st.sampled_from(sorted(VERSIONS)),
    "problem": st.sampled_from(sorted(PROBLEMS)),
    "rate": st.sampled_from(sorted(RATES)),
    "device": st.sampled_from(["cpu", "cuda", None]),
    "carry": st.booleans(),
    "start_rate": st.sampled_from(NUMBERS),
    "meta_rate": st.sampled_from(NUMBERS),
    "inner_steps": st.sampled_from(WHOLE[:5]),
    "outer_steps": st.sampled_from(WHOLE),
    "seed": st.sampled_from(WHOLE),
}
presets = st.fixed_dictionaries({}, optional={
    name: st.one_of(anything, values) for name, values in VALUES.items() if name not in ("inner_steps", "outer_steps")
} | {"truncation": anything, "dtype": st.sampled_from(["float64", "float16"]), "nonsense": anything})  # fmt: skip


@many
@given(
    goal=st.one_of(st.just(""), st.sampled_from(["02", "05", "win"]), anything),
    table=st.one_of(st.none(), st.sampled_from(TABLES), st.sampled_from(TABLES).map(Path), anything),
    chosen=presets,
)
def test_a_lab_is_made_or_says_why_not(goal, table, chosen):
    def made():
        with undrawn():
            return TrajectoryLab(goal, **chosen) if table is None else Workbench(table, goal, **chosen)

    lab = or_a_sentence(made)
    if lab is not None:
        assert lab.settings() == Settings(**{"outer_steps": lab.base.outer_steps, **chosen})
        lab.press_run()
        assert "await lab.run()" in lab.status.value and lab.runs == []
        lab.panel.close_all()


MINE = "name,age\nAda,36\n"


class Pressing(RuleBasedStateMachine):
    """Whatever is chosen and pressed, in any order: no traceback, a sentence in each status, and no run is lost."""

    def __init__(self):
        super().__init__()
        self.loop, self.went_wrong, self.kept = asyncio.new_event_loop(), [], []
        self.loop.set_exception_handler(lambda loop, context: self.went_wrong.append(context))
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "mine.csv").write_text(MINE)

    @initialize(table=st.sampled_from(["", "runs.csv"]), drawn=st.sampled_from([False] * 7 + [True]))
    def make(self, table, drawn):
        self.patches = contextlib.ExitStack()
        if not drawn:  # one machine in eight draws
            self.patches.enter_context(undrawn())

        async def made():
            return Workbench(str(self.folder / table) if table else "", outer_steps=2)

        self.bench = self.loop.run_until_complete(made())
        self.tab, self.files = self.bench.comparison, self.bench.files

    def press(self, button, turns, thread=False):
        """Press it as the page does, on the loop's thread or on another, and give the loop some turns."""

        async def pressed():
            await asyncio.to_thread(button.click) if thread else button.click()
            for _ in range(turns):
                await asyncio.sleep(0)

        self.loop.run_until_complete(pressed())

    def until(self, condition):
        async def waiting():
            deadline = self.loop.time() + 60
            while not condition():
                assert self.loop.time() < deadline, "it does not end"
                await asyncio.sleep(0)

        self.loop.run_until_complete(waiting())

    @rule(data=st.data(), name=st.sampled_from(sorted(VALUES)))
    def choose(self, data, name):
        with contextlib.suppress(TraitError):  # what no page can send
            self.bench.controls[name].value = data.draw(VALUES[name])

    @rule(turns=st.integers(0, 9), thread=st.booleans())
    def run(self, turns, thread):
        self.press(self.bench.go, turns, thread)

    @rule(turns=st.integers(0, 9), thread=st.booleans())
    def stop(self, turns, thread):
        self.press(self.bench.halt, turns, thread)

    @rule(turns=st.integers(1, 9), thread=st.booleans())
    def clear(self, turns, thread):
        going = self.bench.runs[-1:] if self.bench.running else []
        self.kept = [run for run in going if run.settings.outer_steps > 1000]  # a short one may end meanwhile
        self.press(self.bench.wipe, turns, thread)

    @rule()
    def come_to_an_end(self):
        self.bench.stop()
        self.until(lambda: not self.bench.running)

    @rule()
    def await_a_run(self):
        before = len(self.bench.runs)
        self.bench.controls["outer_steps"].value = 2
        run = self.loop.run_until_complete(self.bench.run())
        assert run is None or (run in self.bench.runs and (run.records or run.error or len(self.bench.runs) > before))

    @rule(name=st.sampled_from(["runs.csv", "no/such/place.csv", "", " ", ".", "mine.csv", "x" * 300, "a\0b", "é.csv"]))
    def name_the_table(self, name):
        self.files.path.value = str(self.folder / name) if name.strip(". ") and "\0" not in name else name

    @rule(auto=st.booleans(), which=st.sampled_from(["save", "load", "auto"]))
    def keep(self, auto, which):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            if which == "auto":
                self.files.auto.value = auto
            else:
                getattr(self.files, which)()
                table = Path(self.files.path.value)
                if which == "save" and table.name == "runs.csv":
                    finished = self.bench.runs[: len(self.bench.runs) - self.bench.running]
                    assert unknown(finished, load_csv(table)) == []
        finally:
            os.chdir(before)

    @rule(
        versions=st.lists(st.sampled_from(sorted(VERSIONS)), max_size=2, unique=True),
        steps=st.sampled_from(["1", "1, 2", "", "0", "²", "x", "1e3", "-1", "2 2 2", "99999999999", "٣", "<b>"]),
        seeds=st.integers(-1, 3),
    )
    def choose_what_to_compare(self, versions, steps, seeds):
        self.tab.versions.value, self.tab.steps.value, self.tab.seeds.value = tuple(versions), steps, seeds

    @rule(turns=st.integers(0, 9))
    def compare(self, turns):
        self.press(self.tab.go, turns)

    @rule()
    def stop_comparing(self):
        self.press(self.tab.halt, 1)
        if self.tab.go.disabled:
            self.tab.halt.click()
            self.until(lambda: not self.tab.go.disabled)

    @invariant()
    def nothing_is_lost_and_all_is_said(self):
        self.loop.run_until_complete(asyncio.sleep(0))
        assert not self.went_wrong, self.went_wrong
        assert all(any(run is one for one in self.bench.runs) for run in self.kept)
        self.kept = list(self.bench.runs)
        for said in (self.bench.status.value, self.tab.status.value, self.files.status.value):
            assert said and "Traceback" not in said and "<b>" not in html.unescape(said).replace("'<b>'", "")
        for task in (self.bench._task, getattr(self.tab, "_task", None)):
            assert task is None or not task.done() or task.cancelled() or task.exception() is None
        assert self.bench.go.disabled != self.bench.halt.disabled
        assert self.tab.go.disabled != self.tab.halt.disabled
        assert bytes(self.bench.image.value).startswith(b"\x89PNG")
        assert (self.folder / "mine.csv").read_text() == MINE

    def teardown(self):
        self.bench.stop()
        self.tab.halt.click()
        self.until(lambda: not self.bench.running and not self.tab.go.disabled)
        self.bench.panel.close_all()
        self.patches.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.folder)


def test_any_presses():
    few = settings(many, max_examples=max(10, EXAMPLES // 4), stateful_step_count=12)
    run_state_machine_as_test(Pressing, settings=few)
