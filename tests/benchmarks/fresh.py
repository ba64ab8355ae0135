"""What only a fresh process can tell: CPU seconds to the first outer step, and the growth of peak memory with K.

python fresh.py first NAME            seconds, imports and compilation included: classifier, K = 5
python fresh.py memory NAME K         MiB that an outer step of 784-256-10 at K adds to the peak of a K = 2 warm-up

A child's peak starts at its parent's size, so whoever starts this for the memory should be small: `run.py` is.
"""

import sys
import time

from contestants import make
from tasks import TASKS


def first(name: str) -> float:
    make(name, TASKS["classifier"](), 5).step()
    return time.process_time()


def memory(name: str, inner_steps: str) -> float:
    from resource import RUSAGE_SELF, getrusage  # not on Windows

    task = TASKS["784-256-10"]()
    warm = make(name, task, 2)
    warm.step()
    warm.step()
    before = getrusage(RUSAGE_SELF).ru_maxrss
    make(name, task, int(inner_steps)).step()
    unit = 1 if sys.platform == "darwin" else 1024
    return (getrusage(RUSAGE_SELF).ru_maxrss - before) * unit / 2**20


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print({"first": first, "memory": memory}[what](*rest))
