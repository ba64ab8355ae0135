"""What the doctor says, as text and as a page: the verdict, the guilty line, the reason, the repair, both numbers."""

import html
import linecache
import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from metalib.culprit import Finding
from metalib.places import HERE
from metalib.report import MEANINGS, Report, fold, short

AROUND = 2  # lines of context on either side
RIGHT, BROKEN, GREY = "#1b7f4d", "#c2410c", "#8a8f98"  # told apart by the colour-blind, legible on white and on black


class Location(NamedTuple):
    """A line of the user's: `str()` gives it as a reader names it, without a notebook's temporary path."""

    filename: str
    lineno: int
    source: str

    def __str__(self):
        path = self.filename
        if "ipykernel_" in path or path.startswith("<cell"):
            return f"line {self.lineno} of the cell"
        for home in (os.getcwd(), os.path.dirname(HERE)):  # the reader's own files, and metalib's
            if path.startswith(os.path.join(home, "")):
                return f"{os.path.relpath(path, home)}, line {self.lineno}"
        return f"{path}, line {self.lineno}"


class Stop(NamedTuple):
    """A place on the way from the meta-parameter to the outer loss, and whether the gradient still gets there."""

    label: str
    known: bool


@dataclass(frozen=True)
class Diagnosis:
    """`cause` is a key of metalib.causes.CAUSES, and `location` the line to change; both None when the step is right.

    `claimed` and `expected` hold, for each meta-parameter, what autograd and what finite differences say. They are
    gradients, or for a large tensor one number: the derivative along a direction. `way` is the picture's content.
    """

    verdict: str
    cause: str | None = None
    location: Location | None = None
    explanation: str = ""
    repair: str = ""
    claimed: dict[str, Tensor | None] = field(default_factory=dict)
    expected: dict[str, Tensor | None] = field(default_factory=dict)
    by_parameter: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None
    way: tuple[Stop, ...] = ()

    def __str__(self):
        lines = [str(Report(self.verdict, self.by_parameter, self.claimed, self.expected, self.error))]
        if self.verdict == "right" and not self.by_parameter:
            lines = ["right: no fault of the outer loop was found"]
        if self.cause is None:
            return lines[0]
        if self.location:
            lines += ["", f"{self.location} ({self.cause})"]
            lines += [f"{'>' if at == self.location.lineno else ' '} {at:5} | {text}" for at, text in self.context()]
        lines += ["", fold(f"why     {self.explanation}", 8), fold(f"repair  {self.repair}", 8)]
        if self.way:
            lines += ["", f"value     {' → '.join(stop.label for stop in self.way)}"]
            known = [stop.label for stop in self.way if stop.known]
            lines += [f"gradient  {' → '.join(known)}{'' if len(known) == len(self.way) else ' ✂'}"]
        return "\n".join(lines)

    __repr__ = __str__

    def context(self) -> list[tuple[int, str]]:
        """(number, text) of the guilty line and its neighbours, as far as the source is at hand."""
        if self.location is None:
            return []
        first, last = max(1, self.location.lineno - AROUND), self.location.lineno + AROUND
        found = [(at, linecache.getline(self.location.filename, at).rstrip()) for at in range(first, last + 1)]
        return [(at, text) for at, text in found if text]

    def _repr_html_(self) -> str:
        colour = RIGHT if self.verdict == "right" else BROKEN
        parts = [f"<b style='color:{colour}'>{self.verdict}</b>: {html.escape(MEANINGS[self.verdict])}"]
        if self.error is not None:
            parts.append(f"<code>{html.escape(f'{type(self.error).__name__}: {self.error}')}</code>")
        if self.cause is not None:
            parts += [self._code(), f"<b>Why.</b> {_marked(self.explanation)}"]
            parts += [f"<b>Repair.</b> {_marked(self.repair)}"]
        parts += [self._numbers(), self._picture()]
        inside = "".join(f"<div style='margin:0.5em 0'>{part}</div>" for part in parts if part)
        return f"<div class='metalib-diagnosis' style='max-width:60em'>{inside}</div>"

    def _code(self) -> str:
        if self.location is None:
            return ""
        rows = []
        for at, text in self.context():
            guilty = at == self.location.lineno
            style = (
                f"border-left:4px solid {BROKEN};font-weight:bold" if guilty else "border-left:4px solid transparent"
            )
            rows.append(
                f"<div style='{style};padding-left:0.5em;font-family:monospace'>{at:5}  {html.escape(text)}</div>"
            )
        head = html.escape(f"{self.location} ({self.cause})")
        return f"{head}<pre style='margin:0.3em 0;white-space:pre;overflow-x:auto'>{''.join(rows)}</pre>"

    def _numbers(self) -> str:
        head = "".join(
            f"<th style='text-align:left'>{name}</th>" for name in ("", "autograd", "differences", "verdict")
        )
        rows = [
            f"<tr><td>{html.escape(name)}</td><td>{short(self.claimed.get(name))}</td>"
            f"<td>{short(self.expected.get(name))}</td><td>{verdict}</td></tr>"
            for name, verdict in self.by_parameter.items()
        ]
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""

    def _picture(self) -> str:
        """Two lanes, value and gradient, from the meta-parameter to the outer loss, with the cut between.

        A table, since JupyterLab keeps the words of an SVG and drops its lines until the notebook is trusted.
        """
        if not self.way:
            return ""
        cut = next((at for at, stop in enumerate(self.way) if not stop.known), None)
        lanes = "".join(self._lane(name, cut) for name in ("value", "gradient"))
        return f"<table style='border-collapse:separate;border-spacing:0 0.6em'>{lanes}</table>"

    def _lane(self, name: str, cut: int | None) -> str:
        cells = [f"<td style='text-align:left;background:none'>{name}</td>"]
        for at, stop in enumerate(self.way):
            alive = name == "value" or stop.known
            sign, paint = ("✂", BROKEN) if name == "gradient" and at == cut else ("→", RIGHT if alive else GREY)
            cells += [f"<td style='color:{paint};background:none;padding:0 0.3em'>{sign}</td>"] * (at > 0)
            line = f"border:1px solid {RIGHT}" if alive else f"border:1px dashed {GREY};color:{GREY}"
            style = f"{line};text-align:center;background:none;padding:0.3em 1.2em"
            cells.append(f"<td style='{style}'>{html.escape(stop.label)}</td>")
        return f"<tr style='background:none'>{''.join(cells)}</tr>"


def explained(finding: Finding, causes: dict, meta: str) -> dict:
    """A finding as the fields of a Diagnosis, its cause's two sentences filled in."""
    frame = finding.frame
    fields = {"line": frame.lineno if frame else "?", "meta": meta, "detail": finding.detail}
    why, repair = (sentence.format(**fields) for sentence in causes[finding.cause])
    location = Location(frame.filename, frame.lineno, frame.source) if frame else None
    return {"cause": finding.cause, "location": location, "explanation": why, "repair": repair}


def _marked(text: str) -> str:
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text))
