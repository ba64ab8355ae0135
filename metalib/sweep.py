"""Many runs, and one table of them: `sweep(settings)` here, or `sweep(settings, executor)` on any pool.

    found = sweep(grid(Settings(), inner_steps=(1, 2, 5), seed=range(8)))
    found.runs         the runs, in the order of the settings
    found.table()      a row a run: what it was, where its rates ended, how it ended

Without an executor, runs that can be one tensor program are; the others are run one by one. With an executor, each run
is a task of its own: a `concurrent.futures.ProcessPoolExecutor`, or `client.get_executor()` of a `dask.distributed`
client on a cluster, by the same call. A pool's runs equal those of this process to the last digit; those of one tensor
program equal them but for rounding.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import product

from torch import Tensor

from metalib.settings import Settings, known
from metalib.together import train_together, why_not_together
from metalib.train import Run, complete

AT_ONCE = 256  # runs in one tensor program: more were measured to be no faster


@dataclass(frozen=True)
class Sweep:
    """What is done, and what is left when it was interrupted. `notes` says what did not go as planned.

    >>> from metalib.settings import Settings
    >>> from metalib.sweep import sweep
    >>> found = sweep([Settings(outer_steps=3), Settings(version="in_place")])
    >>> [row["outer_steps_done"] for row in found.table()], found.left
    ([3, 0], [])
    """

    settings: list[Settings]
    done: dict[int, Run]
    notes: list[str]

    @property
    def runs(self) -> list[Run]:
        """The finished runs, in the order of their settings."""
        return [self.done[place] for place in sorted(self.done)]

    @property
    def left(self) -> list[Settings]:
        """The settings that were not run: hand them to `sweep` to go on."""
        return [each for place, each in enumerate(self.settings) if place not in self.done]

    def table(self) -> list[dict]:
        """A row a run: its settings, the rates and the outer loss of its last outer step, and its error."""
        return [row(run) for run in self.runs]


def row(run: Run) -> dict:
    """One run in a tidy row. A run without a record has no rates, and None for its loss."""
    last = run.records[-1] if run.records else None
    ends = {f"rates.{name}": rate for name, rate in last.rates.items()} if last else {}
    found = {"outer_steps_done": len(run.records), "meta_loss": last.meta_loss if last else None, "error": run.error}
    return asdict(run.settings) | ends | found


def grid(base: Settings, **values: Iterable) -> list[Settings]:
    """`base` with every combination of the given values, the last one varying fastest.

    grid(Settings(), inner_steps=(1, 2), seed=range(3)) holds six settings. A ValueError names a value that cannot be.

    >>> from metalib.settings import Settings
    >>> from metalib.sweep import grid
    >>> [(each.inner_steps, each.seed) for each in grid(Settings(), inner_steps=(1, 2), seed=range(2))]
    [(1, 0), (1, 1), (2, 0), (2, 1)]
    """
    for name, each in known(values).items():
        if isinstance(each, str | Tensor) or not isinstance(each, Iterable):
            raise ValueError(f"{name} is {each!r}: give the values to try, such as {name}=({each!r},)")
    return [replace(base, **dict(zip(values, each, strict=True))) for each in product(*values.values())]


def sweep(
    settings: Iterable[Settings],
    executor: Executor | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Run all the settings. `progress(share)` hears which share of the work is done, from 0 to 1, in this thread.

    Ctrl-C, or Stop in Jupyter, ends it and keeps what is done: the rest is in `left`. When a pool breaks, because one
    of its workers died, what it had not finished is run here, and a note says so. (Dask gives the work of a worker that
    died to another by itself.) A run that raises or diverges is a run with an error, and stops nothing.

    >>> from metalib.settings import Settings
    >>> from metalib.sweep import grid, sweep
    >>> found = sweep(grid(Settings(outer_steps=3), version=("functional", "data_write")))
    >>> [(row["version"], round(row["rates.rate"], 2)) for row in found.table()]
    [('functional', 0.11), ('data_write', 0.1)]
    """
    found = Sweep(_listed(settings), {}, [])
    _check(found.settings, executor, progress)
    try:
        for pieces, runs in _here(found) if executor is None else _there(found, executor):
            found.done.update(pieces)
            if progress is not None:
                progress((len(found.done) + runs) / len(found.settings))
    except KeyboardInterrupt:
        found.notes.append(f"interrupted: {len(found.done)} of {len(found.settings)} runs are done")
    return found


def _listed(settings: Iterable[Settings]) -> list[Settings]:
    listed = list(settings) if isinstance(settings, Iterable) and not isinstance(settings, Tensor) else [settings]
    for each in listed:
        if not isinstance(each, Settings):
            raise ValueError(
                f"settings hold {each!r}: give a list of Settings, such as grid(Settings(), seed=range(8))"
            )
    return listed


def _check(settings: list[Settings], executor, progress) -> None:
    """ValueError before the first run for what would end the sweep after some. A pool may have devices of its own."""
    if executor is not None and not hasattr(executor, "submit"):
        raise ValueError(f"executor is {executor!r}: give one of concurrent.futures, or none to run all of it here")
    if progress is not None and not callable(progress):
        raise ValueError(f"progress is {progress!r}: give a function of one number, such as print")
    for each in settings if executor is None else ():
        each.check_device()


Work = Iterator[tuple[dict[int, Run], float]]  # runs that are finished, by place; how many others are done in part


def _here(found: Sweep) -> Work:
    """In this process: one tensor program for those that can share one, then the others one by one."""
    for places in _groups(found.settings):
        group = [found.settings[place] for place in places]
        if len(group) == 1:
            yield {places[0]: complete(group[0])}, 0.0
            continue
        longest = max(each.outer_steps for each in group)
        runs: list[Run] = []
        for step, grown in enumerate(train_together(group), start=1):
            runs = grown
            if step < longest:
                yield {}, len(group) * step / longest
        yield dict(zip(places, runs, strict=True)), 0.0


def _groups(settings: list[Settings]) -> list[list[int]]:
    """The places of those that can run together, at most AT_ONCE in a group."""
    groups: list[list[int]] = []
    for place, each in enumerate(settings):
        for group in groups:
            if len(group) < AT_ONCE and not why_not_together([settings[group[0]], each]):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def _run(result) -> Run:
    if not isinstance(result, Run):
        raise TypeError(f"it gave {result!r} and not the run")
    return result


def _there(found: Sweep, executor: Executor) -> Work:
    """One piece of work for each run, in the order in which they end."""
    futures, broken = {}, None
    try:
        for place, each in enumerate(found.settings):
            futures[executor.submit(complete, each)] = place
        for future in as_completed(futures):
            try:
                yield {futures[future]: _run(future.result())}, 0.0
            except Exception as error:  # `complete` keeps a run's own errors: it is the pool that failed
                broken = broken or error
    except Exception as error:  # already while the work was handed out
        broken = error
    finally:
        for future in futures:
            future.cancel()
    left = [place for place in range(len(found.settings)) if place not in found.done]
    if left:
        why = str(broken) or type(broken).__name__
        found.notes.append(f"the pool failed ({why}): {len(left)} runs were made in this process instead")
    for place in left:
        yield {place: complete(found.settings[place])}, 0.0
