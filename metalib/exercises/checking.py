"""What an exercise is, what its check says, and where exercises and goals are registered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from metalib.train import Run


@dataclass(frozen=True)
class Finding:
    """Whether an answer is right; if not, why. `seen` has a line for each thing that was measured on the way."""

    solved: bool
    why: str
    seen: list[str] = field(default_factory=list)

    def __str__(self):
        return "\n".join([*self.seen, f"{'Solved' if self.solved else 'Not yet'}. {self.why}".strip()])


class Exercise(NamedTuple):
    """`examine` takes the reader's answer; `minutes` is what an unhurried reader needs."""

    title: str
    minutes: int
    examine: Callable[[Any], Finding]


class Goal(NamedTuple):
    """What to reach with a lab. `reached` looks at the runs so far: a sentence if they reach it, else ""."""

    text: str
    reached: Callable[[list[Run]], str]


EXERCISES: dict[str, Exercise] = {}
GOALS: dict[str, Goal] = {}


def exercise(name: str, title: str, minutes: int):
    """Register the decorated check as the exercise `name`: the notebook's number, a dot, and its place there."""

    def register(examine: Callable[[Any], Finding]):
        EXERCISES[name] = Exercise(title, minutes, examine)
        return examine

    return register


def goal(notebook: str, text: str):
    """Register the decorated function as the goal of a notebook's lab."""

    def register(reached: Callable[[list[Run]], str]):
        GOALS[notebook] = Goal(text, reached)
        return reached

    return register
