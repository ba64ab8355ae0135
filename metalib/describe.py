"""A run in words: its name, whether a gradient reached its rate, and one sentence on what happened."""

from metalib.problems import PROBLEMS
from metalib.settings import Settings
from metalib.train import Run


def label(settings: Settings) -> str:
    """A run's name in a legend: what usually tells runs apart, then whatever else is not the default."""
    words = [settings.version, f"K = {settings.inner_steps}", f"start {settings.start_rate:g}"]
    default = Settings()
    for name in ("problem", "rate", "meta_rate", "seed", "device"):
        value = getattr(settings, name)
        if value != getattr(default, name):
            words.append(value if isinstance(value, str) else f"{name.replace('_', ' ')} {value:g}")
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
    text = f"{name}: rate {moves} in {len(run.records)} outer steps"
    if is_cut(run):
        text += "; no gradient reaches the rate"
    best = best_rate(run.settings)
    if best is not None:
        text += f" (best rate {best:.3g})"
    return f"{text}. It ended early. {run.error}" if run.error else text
