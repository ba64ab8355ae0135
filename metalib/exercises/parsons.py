"""A Parsons problem: a program put together from given lines, and run.

The lines are functions of ours, so nothing that a reader types is ever evaluated: an answer is an order of letters.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from metalib.report import Undecided


class Names(dict):
    """A function's variables."""

    def __missing__(self, name: str):
        raise NameError(f"name {name!r} is not defined: a line uses it before the line that makes it")


class Line(NamedTuple):
    """A line with its indentation, and what it does to the variables. A `for` gives its range, a `return` its value."""

    text: str
    run: Callable[[Names], Any]

    def is_(self, word: str) -> bool:
        return self.text.split()[0] == word


def letters(answer, lines: dict[str, Line]) -> list[str]:
    """The answer as a list of letters, or Undecided when it is no order of some of the lines."""
    if not isinstance(answer, str | list | tuple) or not all(isinstance(each, str) for each in answer):
        raise Undecided("Give the letters of the lines as one string, from the first line to the last")
    order = [letter for letter in "".join(answer).upper() if letter not in " ,;\n"]
    for letter in order:
        if letter not in lines:
            raise Undecided(f"There is no line {letter!r}: the lines are {', '.join(lines)}")
        if order.count(letter) > 1:
            raise Undecided(f"Line {letter} stands there {order.count(letter)} times: each line can be used once")
    return order


def program(order: list[str], lines: dict[str, Line]) -> Callable[..., Any]:
    """The function that these lines make; its arguments are given by name.

    Raises Undecided where Python would refuse the indentation, and where nothing is returned.
    """
    outer: list[tuple[Line, list[Line]]] = []
    for letter in order:
        line = lines[letter]
        if not line.text.startswith(" " * 8):
            outer.append((line, []))
        elif outer and outer[-1][0].is_("for"):
            outer[-1][1].append(line)
        else:
            raise Undecided(f"IndentationError: line {letter} is indented deeper, but no `for` stands above it")
    if any(line.is_("for") and not body for line, body in outer):
        raise Undecided("IndentationError: no indented line follows the `for`")
    if not any(line.is_("return") for line, _ in outer):
        raise Undecided("No line of your program returns anything, so the weights are lost at its end")
    return lambda **names: _execute(outer, Names(names))


def _execute(outer: list[tuple[Line, list[Line]]], names: Names):
    for line, body in outer:
        if line.is_("return"):
            return line.run(names)
        for _ in line.run(names):
            for each in body:
                each.run(names)
