"""Exercises that check themselves.

    from metalib.exercises import check
    check("2.1", my_function)          prints what was measured and, if it is wrong, why

The exercises of a notebook and the goal of its lab are registered in one file; a long check has a second. A check
never looks at the answer's text: it runs it, at one, two and five inner steps, on one weight and on a network, and
asks the referee. Reading a check gives its answer away.
"""

from importlib import import_module
from pkgutil import iter_modules

from metalib.exercises.checking import EXERCISES, GOALS, Exercise, Finding, Goal
from metalib.report import Undecided, fold
from metalib.settings import one_of

__all__ = ["EXERCISES", "GOALS", "Exercise", "Finding", "Goal", "check", "examine", "goal", "load"]


def check(name: str, answer) -> None:
    """Print what the exercise's check measured on the answer, and whether it is solved; if not, why not.

    >>> from metalib.exercises import check
    >>> check("0.1", lambda w, log_rate, K, loss: w)
    K = 1, one weight: autograd None, finite differences 0: independent; outer loss 0.778572, but it
      should be 0.325232
    Not yet. The weights have not moved.
    """
    print(fold(str(examine(name, answer))))


def examine(name: str, answer) -> Finding:
    """The same as a value. An answer that raises, hangs on to a graph or is no function gets a sentence, no traceback.

    Raises ValueError for a name that no exercise has.
    """
    load()
    exercise = EXERCISES[one_of("exercise", name, EXERCISES)]
    try:
        return exercise.examine(answer)
    except Undecided as refusal:
        return Finding(False, f"{refusal}.")
    except Exception as error:  # the reader's code, called by the check outside of the referee
        return Finding(False, f"It raises {type(error).__name__}: {error}")


def goal(name: str) -> Goal:
    """The goal of the lab in the notebook of that number, such as "02"."""
    load()
    return GOALS[one_of("goal", name, GOALS)]


def load() -> None:
    """Each file registers its exercises when it is imported."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
