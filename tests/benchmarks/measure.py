"""Do all give the same meta-gradient, and how long does one outer step take? `run.py` starts this and keeps its answer.

pytest-benchmark and asv time one contestant after the other, so that a neighbour's load falls on some of them and looks
like a difference. Here every round times all of them, in a new random order, and what counts is the ratio to the plain
loop of the same round. Each has a process of its own, and one steps at a time: in a common process they would share an
allocator, and find memory ready that each has to ask the system for when it is alone.

Prints progress on stderr and one JSON object on stdout.
"""

import argparse
import json
import random
import subprocess
import sys
from contextlib import ExitStack

from clock import summary
from contestants import HOMES, PLAIN, SWEEPS, available
from tasks import TASKS

AGREE = 1e-5  # relative; what is really seen is about 1e-15
SWEEP_STEPS = 20


class Worker:
    """A contestant's process; a call is an order, see `worker.py`."""

    def __init__(self, name: str):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.name = name
        self.process = subprocess.Popen([sys.executable, "worker.py", name], text=True, **pipes)

    def __call__(self, *order):
        print(json.dumps(order), file=self.process.stdin, flush=True)
        if not (answer := self.process.stdout.readline()):
            raise SystemExit(f"{self.name} died of {order}; its error stands above")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()  # closes its stdin, which ends it


def check(bouts: list[tuple]) -> float:
    """The largest relative deviation from the plain loop, in float64. Whoever disagrees ends the run."""
    largest, everybody = 0.0, {name for names, _, _ in bouts for name in names}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name)) for name in everybody}
        for names, what, steps in bouts:
            found = {name: workers[name]("agree", what, steps) for name in names}
            deviations = {name: _deviation(theirs, found[PLAIN]) for name, theirs in found.items()}
            if wrong := {name: d for name, d in deviations.items() if not d <= AGREE}:  # nan is wrong, too
                raise SystemExit(f"{what}, K = {steps}: not the plain loop's meta-gradient, deviations {wrong}")
            largest = max(largest, *deviations.values())
            print(f"{what}, K = {steps}: all agree to {max(deviations.values()):.0e}", flush=True, file=sys.stderr)
    return largest


def _deviation(found, truth) -> float:
    """The largest relative difference in the loss and in any derivative."""
    flat = [[*(loss if isinstance(loss, list) else [loss]), *gradient] for loss, gradient in (found, truth)]
    return max(abs(own - true) / abs(true) for own, true in zip(*flat, strict=True))


def race(names: list[str], what: str | int, steps: int, rounds: int) -> dict:
    """The summary of each contestant's times."""
    order, times = random.Random(0), {name: [] for name in names}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name)) for name in names}
        for worker in workers.values():
            worker("begin", what, steps)
        for _ in range(rounds):
            for name in order.sample(names, len(names)):
                times[name].append(workers[name]("time"))
    found = {name: summary(taken, times[PLAIN]) for name, taken in times.items()}
    medians = ", ".join(f"{name} {times['ratio'][1]:.2f}" for name, times in found.items())
    print(f"{what}, K = {steps}: {medians}", flush=True, file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=[*TASKS, "sweep"], choices=[*TASKS, "sweep"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="the smaller K only, and the smaller sweep")
    chosen = parser.parse_args()
    names, left_out = available(HOMES)
    sweepers, _ = available(SWEEPS)
    few = slice(2 if chosen.quick else None)
    bouts = [(names, task, k) for task in TASKS if task in chosen.tasks for k in TASKS[task]().inner_steps[few]]
    bouts += [(sweepers, runs, SWEEP_STEPS) for runs in (64, 256)[few] if "sweep" in chosen.tasks]
    answer = {"left out": left_out, "deviation": check(bouts), "times": {}, "sweep": {}}
    for who, what, steps in bouts:
        found = race(who, what, steps, chosen.rounds)
        if isinstance(what, int):
            answer["sweep"][what] = found
        else:
            answer["times"].setdefault(what, {})[steps] = found
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
