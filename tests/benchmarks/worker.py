"""One contestant in a process of its own, which does something only when it is told to: orders on stdin, one a line.

["agree", what, K]      the meta-gradient in float64
["begin", what, K]      make the contestant in float32, warm up
["time"]                CPU and wall seconds of a step

`what` is the name of a task, or the number of runs of a sweep. Each answer is one line of JSON.
"""

import json
import sys

from clock import timed, warmed_up
from contestants import make, make_sweep
from tasks import TASKS, sweep


def contestant(name: str, what: str | int, inner_steps: int, dtype: str):
    if isinstance(what, int):
        return make_sweep(name, sweep(what), inner_steps, dtype)
    return make(name, TASKS[what](), inner_steps, dtype)


def one_thread() -> None:
    """For PyTorch, where it has been loaded; JAX has been told by its own contestant."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def main(name: str) -> None:
    repeats = step = None
    for line in sys.stdin:
        order, *rest = json.loads(line)
        if order == "time":
            found = timed(step, repeats)
        elif order == "agree":
            found = contestant(name, *rest, "float64").meta_gradient()
        else:
            step = contestant(name, *rest, "float32").step
            one_thread()
            repeats = found = warmed_up(step)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
