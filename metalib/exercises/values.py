"""The check of a formula, judged by its values; and of a table of predictions, judged cell by cell."""

from collections.abc import Callable, Iterable, Mapping

import torch

from metalib.exercises.checking import Finding


def examine_formula(
    answer: Callable, truth: Callable, arguments: Iterable[tuple], lookalikes: dict[str, Callable], rtol: float = 1e-9
) -> Finding:
    """The finding on `answer(*arguments)`, a number or a tensor, beside `truth(*arguments)`.

    lookalikes  {sentence: wrong formula}; a sentence is said of an answer that equals its formula up to and including
                the first arguments at which the answer is wrong.
    """
    seen, tried = [], []
    for given in arguments:
        tried.append(given)
        mine, right = _tensor(answer(*given)), _tensor(truth(*given))
        if mine is None or mine.shape != right.shape:
            what = "nothing that is a number" if mine is None else f"a tensor of shape {tuple(mine.shape)}"
            wanted = "one number" if right.dim() == 0 else f"a tensor of shape {tuple(right.shape)}"
            return Finding(False, f"Your function returned {what}: return {wanted}.", seen)
        seen.append(f"yours {_short(mine)}, truth {_short(right)}")
        if not _equal(mine, right, rtol):
            same = [why for why, look in lookalikes.items() if _follows(answer, look, tried, rtol)]
            return Finding(False, same[0] if same else _compare(mine, right, len(tried)), seen)
    return Finding(True, f"Right at {len(tried)} of {len(tried)} places.", seen)


def _follows(answer: Callable, look: Callable, arguments: list[tuple], rtol: float) -> bool:
    return all(_equal(_tensor(answer(*given)), _tensor(look(*given)), rtol) for given in arguments)


def _compare(mine: torch.Tensor, right: torch.Tensor, place: int) -> str:
    if not mine.any():
        return "Yours is exactly zero here, and the truth is not."
    if _equal(mine, -right, 1e-9):
        return "The number is right but for its sign."
    first = "already at the first place" if place == 1 else f"right at {place - 1}, wrong at the next"
    return f"The number is another one: {first}."


def _tensor(value) -> torch.Tensor | None:
    try:
        return torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        return None


def _equal(a: torch.Tensor, b: torch.Tensor, rtol: float) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=rtol, atol=0)  # nan equals nothing


def _short(value: torch.Tensor) -> str:
    return ", ".join(f"{number:.6g}" for number in value.flatten()[:4].tolist())


def examine_table(answer, truth: Mapping, because: Mapping, words: Iterable) -> Finding:
    """The finding on a dict of predictions: how many are right, and why the first miss is one.

    truth    {cell: what really happens}, measured by the caller
    because  {cell: why}
    words    what may be predicted
    """
    words = list(words)
    if not isinstance(answer, dict) or set(answer) != set(truth):
        return Finding(False, f"Give a dict with one prediction for each of {', '.join(map(repr, truth))}.")
    for cell, word in answer.items():
        if word not in words:
            return Finding(False, f"{_name(cell)} is {word!r}: predict one of {', '.join(map(repr, words))}.")
    seen = [f"{_name(cell)}: {answer[cell]} {'✓' if answer[cell] == truth[cell] else '✗'}" for cell in truth]
    missed = [cell for cell in truth if answer[cell] != truth[cell]]
    score = f"{len(truth) - len(missed)} of {len(truth)} are as you say."
    if missed:
        return Finding(False, f"{score} {_name(missed[0])}: {because[missed[0]]}", seen)
    return Finding(True, score, seen)


def _name(cell) -> str:
    return ", ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
