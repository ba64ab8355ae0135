"""In words: a run's name and what happened in it, and an error that is shown on purpose."""

from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager

from metalib.problems import PROBLEMS
from metalib.settings import Settings
from metalib.train import Run
from metalib.versions import VERSIONS


def symptom(version: str) -> str:
    """The first line of a version's docstring: what the reader sees, and the token that does it."""
    return VERSIONS[version].__doc__.partition("\n")[0]


def label(settings: Settings) -> str:
    """A run's name in a legend: what usually tells runs apart, then whatever else is not the default."""
    words = [settings.version, f"K = {settings.inner_steps}", f"start {settings.start_rate:g}"]
    default = Settings()
    for name in ("problem", "rate", "meta_rate", "seed", "device", "dtype", "truncation"):
        value = getattr(settings, name)
        if value != getattr(default, name):
            words.append(value if isinstance(value, str) else f"{name.replace('_', ' ')} {value}")
    return ", ".join(words + ["weights carried over"] * settings.carry)


def labels(runs: Iterable[Run]) -> list[str]:
    """A name for each run, with a number where an earlier run has the same."""
    seen, names = Counter(), []
    for run in runs:
        name = label(run.settings)
        seen[name] += 1
        names.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return names


def best_rate(settings: Settings) -> float | None:
    """The constant rate with the smallest expected outer loss, where it is known for the problem and the kind of loop.

    At one inner step a learned rate settles there. With more it may stop well below for hundreds of outer steps: the
    outer loss is nearly flat around its minimum, and Adam, which divides by the gradients that it remembers, makes
    small steps for a long time after large gradients.
    """
    if settings.rate == "from loss" or settings.carry:
        return None
    return PROBLEMS[settings.problem].best_rate(settings.inner_steps)


def best_name(settings: Settings) -> str:
    """The best rate's name in a legend. It is best on average over tasks, which is not to say that a run reaches it."""
    return f"best rate on average, {settings.problem}, K = {settings.inner_steps}"


def rate_names(run: Run) -> list[str]:
    """The names of the rates that a plot shows."""
    return list(run.records[0].rates) if run.records else ["rate"]


def legend_entry(run: Run, name: str) -> str:
    """A run's entry in a legend: its name, and how it ended or which line is which."""
    curves, styles = rate_names(run), ("solid", "dashed", "dash-dotted", "dotted")
    if run.error:
        return f"{name}: ended after {len(run.records)} outer step{'s' * (len(run.records) != 1)}"
    if len(curves) < 2:
        return name
    return f"{name}\n({', '.join(f'{c} {styles[i % 4]}' for i, c in enumerate(curves))})"


def is_cut(run: Run) -> bool:
    """True when no gradient ever reached a meta-parameter."""
    return bool(run.records) and all(g is None for record in run.records for g in record.meta_gradient.values())


def sentence(run: Run, name: str = "") -> str:
    """What happened to the rate in this run, in words and numbers; `name` where its label does not tell it apart."""
    name = name or label(run.settings)
    if not run.records:
        return f"{name}: {run.error or 'no outer step was run'}"
    first, last = run.records[0], run.records[-1]
    moves = "; ".join(
        f"{curve + ' ' if len(first.rates) > 1 else ''}{rate:.3g} → {last.rates[curve]:.3g}"
        for curve, rate in first.rates.items()
    )
    text = f"{name}: rate {moves} in {len(run.records)} outer step{'s' * (len(run.records) > 1)}"
    if is_cut(run):
        text += "; no gradient reaches the rate"
    best = best_rate(run.settings)
    if best is not None:
        text += f" (best rate {best:.3g})"
    return f"{text}. It ended early. {run.error[0].upper()}{run.error[1:]}" if run.error else text


@contextmanager
def expect_error(kind: type[Exception], fragment: str):
    """Show an error on purpose: print its class and the stable part of its message, and insist that it comes.

    A message's other parts (shapes, devices, names of operations) change between versions of PyTorch. When nothing is
    raised, or something else, the cell fails: a lesson about an error that no longer exists must not pass.

    >>> from metalib.describe import expect_error
    >>> with expect_error(ValueError, "could not convert"):
    ...     float("one")
    ValueError: could not convert …
    """
    try:
        yield
    except kind as error:
        if fragment not in str(error):
            raise AssertionError(f"expected a message with {fragment!r}, got: {error}") from error
        before = "" if str(error).startswith(fragment) else "… "
        after = "" if str(error).rstrip(".").endswith(fragment) else " …"
        print(f"{type(error).__name__}: {before}{fragment}{after}")
    else:
        raise AssertionError(f"expected {kind.__name__} with {fragment!r}, but nothing was raised")
