"""Data in, a picture and a sentence about it out. No pyplot, no globals, nothing shown behind the caller's back.

>>> from metalib.figures import COLOURS
>>> COLOURS[:2]
('#0072B2', '#D55E00')
"""

import io
from typing import NamedTuple

from IPython.display import Image, display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from metalib.report import fold

# Okabe and Ito's palette: told apart by the colour-blind. Line styles vary as well, so nothing hangs on colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


class Picture(NamedTuple):
    """A PNG and the text that says what it shows, for readers who do not see it and for tests."""

    png: bytes
    text: str


def show(picture: Picture) -> None:
    """Put a picture into the notebook, its text below it and as its alternative text.

    >>> from metalib.figures import lines, show
    >>> show(lines([1, 2], {"loss": [2.0, 1.0]}, "The loss falls.", xlabel="step", ylabel="loss"))
    <IPython.core.display.Image object>
    The loss falls.
    """
    display(Image(picture.png, metadata={"alt": picture.text}))  # IPython 7, which Colab has, knows no alt=
    print(fold(picture.text))


def lines(x, curves: dict[str, list[float]], text: str, *, xlabel: str, ylabel: str, log: str = "") -> Picture:
    """Named curves over the same `x`; `log` names the logarithmic axes, for instance "y" or "xy".

    >>> from metalib.figures import lines
    >>> drawn = lines([1, 10], {"a": [1.0, 1.0], "b": [1.0, 0.1]}, "b falls", xlabel="K", ylabel="loss", log="xy")
    >>> drawn.text, drawn.png[1:4]
    ('b falls', b'PNG')
    """
    figure = Figure(figsize=(6.4, 3.6), dpi=100, layout="constrained", facecolor="white")
    axes = figure.subplots()
    for number, (name, y) in enumerate(curves.items()):
        style = STYLES[number % len(STYLES)]
        marker = "o" if len(x) <= 20 else None
        axes.plot(x, y, style, marker=marker, ms=4, lw=2, color=COLOURS[number % len(COLOURS)], label=name)
    scales = {f"{axis}scale": "log" for axis in log}
    axes.set(xlabel=xlabel, ylabel=ylabel, **scales)
    if "x" not in log and all(isinstance(each, int) for each in x):  # steps: there is no half one
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return picture(figure, text)


def picture(figure: Figure, text: str) -> Picture:
    """A finished figure with its text.

    >>> from matplotlib.figure import Figure
    >>> from metalib.figures import picture
    >>> picture(Figure(), "nothing yet").text
    'nothing yet'
    """
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return Picture(file.getvalue(), text)
