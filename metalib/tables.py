"""Runs in a table and back, without loss: `save_csv(runs, path)`, `add_csv(runs, path)` and `load_csv(path)`.

A table has one row a record. A column's name is a field, or a field and a key: `rates.fc1.weight`. An empty cell means
that this run has no such key; None and nan are written out. repr gives every float back exactly.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

from metalib.resume import write_whole
from metalib.settings import Settings
from metalib.train import Record, Run


def save_csv(runs: Iterable[Run], path: str | Path) -> None:
    """Write the runs to one table: their settings repeat in each row, so that any tool can group by them.

    The file is there as a whole or not at all; an older one is replaced.

    >>> from metalib.settings import Settings
    >>> from metalib.tables import save_csv
    >>> from metalib.train import complete
    >>> save_csv([complete(Settings(outer_steps=3))], "runs.csv")
    """
    rows = [row for number, run in enumerate(runs) for row in _rows(number, run)]
    names = dict.fromkeys(["run", "error", *(name for row in rows for name in row)])  # two, where there are no runs
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, file.getvalue())


def add_csv(runs: Iterable[Run], path: str | Path) -> list[Run]:
    """Write the runs to the table at `path` beside those that it holds, none twice; returns all that it then holds.

    ValueError where there is another file: it is left alone.

    >>> from metalib.settings import Settings
    >>> from metalib.tables import add_csv
    >>> from metalib.train import complete
    >>> run = complete(Settings(outer_steps=3))
    >>> len(add_csv([run], "kept.csv")), len(add_csv([run], "kept.csv"))
    (1, 1)
    """
    held = load_csv(path) if Path(path).exists() else []
    held += unknown(runs, held)
    save_csv(held, path)
    return held


def unknown(runs: Iterable[Run], held: Iterable[Run]) -> list[Run]:
    """Those of the runs that are not held. Compared as rows: a nan, unlike itself, equals a nan there."""
    known = {repr(list(_rows(0, run))) for run in held}
    return [run for run in runs if repr(list(_rows(0, run))) not in known]


def _rows(number: int, run: Run) -> Iterator[dict[str, str]]:
    head = {"run": number, "error": run.error}
    head |= {f"settings.{name}": repr(value) for name, value in asdict(run.settings).items()}
    for record in run.records:
        row = head | {"step": record.step, "meta_loss": repr(record.meta_loss), "seconds": repr(record.seconds)}
        row |= {f"rates.{name}": repr(rate) for name, rate in record.rates.items()}
        row |= {f"inner_losses.{k}": repr(loss) for k, loss in enumerate(record.inner_losses)}
        yield row | {f"meta_gradient.{name}": repr(grad) for name, grad in record.meta_gradient.items()}
    if not run.records:
        yield head


def load_csv(path: str | Path) -> list[Run]:
    """The runs of a table that `save_csv` wrote. A ValueError says which line of another table cannot be read, and why.

    A byte-order mark at the start, as spreadsheets write it, is welcome.

    >>> from metalib.settings import Settings
    >>> from metalib.tables import load_csv, save_csv
    >>> from metalib.train import complete
    >>> run = complete(Settings(outer_steps=3))
    >>> save_csv([run], "runs.csv")
    >>> load_csv("runs.csv") == [run]
    True
    """
    runs: dict[str, Run] = {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        text = file.read()
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if text.strip() and not {"run", "error"} <= set(reader.fieldnames or ()):
            raise _Unreadable("not a table of runs that save_csv wrote: its first line has not their columns")
        for row in reader:
            _add(runs, row)
        if text and text[-1] not in "\r\n":
            raise _Unreadable("the file ends in the middle of this line: the rest is missing")
    except _Unreadable as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        sentence = f"{path}, line {reader.line_num}: not a table of runs that save_csv wrote ({error!r})"
        raise ValueError(sentence) from error
    return list(runs.values())


class _Unreadable(Exception):
    """What is wrong with a line, in words."""


def _add(runs: dict[str, Run], row: dict[str, str]) -> None:
    """Put one line into the run that it belongs to."""
    if None in row:  # where DictReader puts what is too much
        raise _Unreadable("more cells than the first line has names")
    if None in row.values():
        raise _Unreadable("fewer cells than the first line has names: the line was cut, or a cell was deleted")
    settings = _settings(row)
    run = runs.setdefault(row["run"], Run(settings, error=row["error"]))
    if (settings, row["error"]) != (run.settings, run.error):
        raise _Unreadable(f"run {row['run']} has other settings, or another error, than in its lines above")
    if row.get("step"):
        run.records.append(_record(row))


def _settings(row: dict[str, str]) -> Settings:
    return Settings(**{f.name: _value(row[f"settings.{f.name}"]) for f in fields(Settings)})


def _record(row: dict[str, str]) -> Record:
    return Record(
        step=int(row["step"]),
        rates=_group(row, "rates."),
        inner_losses=tuple(_group(row, "inner_losses.").values()),
        meta_loss=float(row["meta_loss"]),
        meta_gradient=_group(row, "meta_gradient."),
        seconds=float(row["seconds"]),
    )


def _group(row: dict[str, str], prefix: str) -> dict[str, float | None]:
    return {name.removeprefix(prefix): _value(cell) for name, cell in row.items() if name.startswith(prefix) and cell}


def _value(cell: str):
    words = {"None": None, "True": True, "False": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    if cell in words:
        return words[cell]
    if cell[:1] in "'\"":
        return cell[1:-1]
    return int(cell) if cell.lstrip("-").isdigit() else float(cell)
