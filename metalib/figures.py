"""Data in, a picture and a sentence about it out. No pyplot, no globals, nothing shown behind the caller's back."""

import io
from typing import NamedTuple

from IPython.display import Image, display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by the colour-blind. Line styles vary as well, so nothing hangs on colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


class Picture(NamedTuple):
    """A PNG and the text that says what it shows, for readers who do not see it and for tests."""

    png: bytes
    text: str


def show(picture: Picture) -> None:
    """Put a picture into the notebook, its text below it and as its alternative text."""
    display(Image(picture.png, alt=picture.text))
    print(picture.text)


def lines(x, curves: dict[str, list[float]], text: str, *, xlabel: str, ylabel: str, log: str = "") -> Picture:
    """Named curves over the same `x`; `log` names the logarithmic axes, for instance "y" or "xy"."""
    figure = Figure(figsize=(6.4, 3.6), dpi=100, layout="constrained", facecolor="white")
    axes = figure.subplots()
    for number, (name, y) in enumerate(curves.items()):
        style = STYLES[number % len(STYLES)]
        marker = "o" if len(x) <= 20 else None
        axes.plot(x, y, style, marker=marker, ms=4, lw=2, color=COLOURS[number % len(COLOURS)], label=name)
    scales = {f"{axis}scale": "log" for axis in log}
    axes.set(xlabel=xlabel, ylabel=ylabel, **scales)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return _picture(figure, text)


# Each verdict has a colour and its word is always written out.
VERDICT_COLOURS = {
    "right": "#BFE3D0", "wrong": "#F6C9A8", "cut": "#F5E6A3", "raises": "#E8B9CF",
    "independent": "#DDDDDD", "nan": "#C9D6EE",
}  # fmt: skip


def verdicts(rows: dict[str, list[str]], columns: list[str], text: str) -> Picture:
    """A table of verdicts: one row a version, one column a setting."""
    figure = Figure(figsize=(1.7 + 1.15 * len(columns), 0.7 + 0.34 * len(rows)), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    colours = [["white", *(VERDICT_COLOURS[verdict] for verdict in row)] for row in rows.values()]
    table = axes.table(
        [[name, *row] for name, row in rows.items()], cellColours=colours, colLabels=["", *columns],
        colWidths=[1.7, *[1.15] * len(columns)], cellLoc="center", bbox=(0.01, 0.01, 0.98, 0.98),
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for cell in table.get_celld().values():
        cell.set_edgecolor("white")
    return _picture(figure, text)


def _picture(figure: Figure, text: str) -> Picture:
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return Picture(file.getvalue(), text)
