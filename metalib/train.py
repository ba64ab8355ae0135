"""The outer loop: one record an outer step, so that progress, live plots and stopping are the caller's own `for` loop.

    for record in train(Settings(inner_steps=5)):
        print(record.step, record.rates, record.meta_loss)

A `Run` keeps the records together with the settings that made them; `save_csv` and `load_csv` take any number of runs
to one table and back without loss.
"""

import csv
import io
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch

from metalib.rates import Curve
from metalib.settings import Settings
from metalib.unroll import begin, curve, draw, one_thread, unroll


@dataclass(frozen=True)
class Record:
    """One outer step. Rates are those that this step used; a meta-gradient of None means that none arrived.

    `inner_losses` has one entry for each inner step, taken before that step; `seconds` is this outer step's time.
    """

    step: int
    rates: Curve
    inner_losses: tuple[float, ...]
    meta_loss: float
    meta_gradient: dict[str, float | None]
    seconds: float


@dataclass
class Run:
    """Settings, the records so far, and the sentence that says why it ended early ("" if it did not)."""

    settings: Settings
    records: list[Record] = field(default_factory=list)
    error: str = ""


class Diverged(ArithmeticError):
    """The outer loss or the meta-gradient is no longer finite; the record of that step was yielded before."""


def train(settings: Settings) -> Iterator[Record]:
    """Learn the rate: unroll, differentiate the outer loss for the meta-parameters, one step of Adam; then yield.

    `unroll` starts from weights without a history, so neither graph nor memory grows. Whatever the inner loop's
    version raises comes out of here as it is; Diverged follows the record in which a number stopped being finite.
    """
    generator, weights, meta = begin(settings)
    optimiser = torch.optim.Adam(meta.values(), lr=settings.meta_rate)
    for step in range(settings.outer_steps):
        began = time.perf_counter()
        with one_thread():
            run = unroll(settings, meta, weights, draw(settings, generator))
            grads = torch.autograd.grad(run.outer_loss, list(meta.values()), allow_unused=True)
        for parameter, grad in zip(meta.values(), grads, strict=True):
            parameter.grad = grad
        record = Record(
            step=step,
            rates=curve(settings, run),
            inner_losses=tuple(loss.item() for loss in run.inner_losses),
            meta_loss=run.outer_loss.item(),
            meta_gradient={name: None if p.grad is None else p.grad.item() for name, p in meta.items()},
            seconds=time.perf_counter() - began,
        )
        yield record
        _check_finite(record)
        optimiser.step()
        if settings.carry:
            weights = run.weights


def _check_finite(record: Record) -> None:
    gradients = [g for g in record.meta_gradient.values() if g is not None]
    if not all(map(math.isfinite, [record.meta_loss, *gradients])):
        rates = ", ".join(f"{rate:.3g}" for rate in record.rates.values())
        raise Diverged(
            f"outer step {record.step} diverged at rate {rates}: the outer loss is {record.meta_loss:.3g}. "
            "Choose a smaller start rate, a smaller meta rate or fewer inner steps"
        )


def complete(settings: Settings) -> Run:
    """The whole run at once. What stops it early is kept as a sentence in `error`."""
    run = Run(settings)
    try:
        run.records.extend(train(settings))
    except (RuntimeError, Diverged) as error:
        run.error = explain(error)
    return run


def explain(error: Exception) -> str:
    """One line: the class of an exception and its message, without PyTorch's hint about anomaly mode."""
    message = " ".join(str(error).partition("Hint:")[0].split())
    return message if isinstance(error, Diverged) else f"{type(error).__name__}: {message}"


# A run's table has one row a record. A column's name is a field, or a field and a key: `rates.fc1.weight`. An empty
# cell means that this run has no such key; None and nan are written out. repr gives every float back exactly.


def save_csv(runs: Iterable[Run], path: str | Path) -> None:
    """Write the runs to one table: their settings repeat in each row, so that any tool can group by them."""
    rows = [row for number, run in enumerate(runs) for row in _rows(number, run)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


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
    """
    runs: dict[str, Run] = {}
    with open(path, newline="", encoding="utf-8-sig") as file:
        text = file.read()
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
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
