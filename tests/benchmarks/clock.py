"""What a step costs, in CPU time, and how to sum up many measurements.

CPU time, since waiting for a busy machine's other work is nobody's fault. It still changes with what that other work
leaves of caches and of a shared core: hence rounds, and ratios within a round (`measure.py`).
"""

import gc
import math
import statistics
import time

LEAST = 0.02  # seconds of CPU time that one measurement lasts at least


def timed(step, repeats: int) -> tuple[float, float]:
    """CPU seconds (of all threads) and seconds on the wall, for one of `repeats` steps."""
    gc.collect()  # or one measurement pays for what another has left behind
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        step()
    return (time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats


def warmed_up(step) -> int:
    """How often to step in one measurement, found after the first steps, which import, compile and allocate."""
    step()
    gc.collect()
    gc.freeze()  # what the libraries have loaded is no garbage, and looking through it takes longer than a step
    repeats = 1
    while (taken := timed(step, repeats)[0] * repeats) < LEAST:
        repeats = max(2 * repeats, math.ceil(1.2 * LEAST * repeats / max(taken, LEAST / 100)))
    return repeats


def summary(taken: list, plain: list) -> dict:
    """{"ratio", "wall ratio": [min, median, max], "cpu seconds": the median} of (cpu, wall) in each round."""
    ratios = [[own / base for own, base in zip(*pair, strict=True)] for pair in zip(taken, plain, strict=True)]
    cpu, wall = zip(*ratios, strict=True)
    return {
        "ratio": spread(cpu),
        "wall ratio": spread(wall),
        "cpu seconds": statistics.median(seconds for seconds, _ in taken),
    }


def spread(values) -> list[float]:
    """Minimum, median, maximum."""
    values = list(values)
    return [min(values), statistics.median(values), max(values)]
