"""In words: a run's name and what happened in it, and an error that is shown on purpose."""

from contextlib import contextmanager

from metalib.problems import PROBLEMS
from metalib.settings import Settings
from metalib.train import Run


def label(settings: Settings) -> str:
    """A run's name in a legend: what usually tells runs apart, then whatever else is not the default."""
    words = [settings.version, f"K = {settings.inner_steps}", f"start {settings.start_rate:g}"]
    default = Settings()
    for name in ("problem", "rate", "meta_rate", "seed", "device", "dtype", "truncation"):
        value = getattr(settings, name)
        if value != getattr(default, name):
            words.append(value if isinstance(value, str) else f"{name.replace('_', ' ')} {value}")
    return ", ".join(words + ["weights carried over"] * settings.carry)


def best_rate(settings: Settings) -> float | None:
    """The closed-form optimum that a run should reach, where one exists for its problem and its kind of loop."""
    if settings.rate == "from loss" or settings.carry:
        return None
    return PROBLEMS[settings.problem].best_rate(settings.inner_steps)


def is_cut(run: Run) -> bool:
    """True when no gradient ever reached a meta-parameter."""
    gradients = [g for record in run.records for g in record.meta_gradient.values()]
    return bool(gradients) and all(g is None for g in gradients)


def sentence(run: Run) -> str:
    """What happened to the rate in this run, in words and numbers."""
    name = label(run.settings)
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
    return f"{text}. It ended early. {run.error}" if run.error else text


@contextmanager
def expect_error(kind: type[Exception], fragment: str):
    """Show an error on purpose: print its class and the stable part of its message, and insist that it comes.

    A message's other parts (shapes, devices, names of operations) change between versions of PyTorch. When nothing is
    raised, or something else, the cell fails: a lesson about an error that no longer exists must not pass.
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
