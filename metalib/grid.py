"""The table of verdicts: any versions, on a linear and a non-linear problem, at one, two and five inner steps.

One step or a linear model alone would let broken versions pass.
"""

from collections.abc import Iterable

from matplotlib.figure import Figure

from metalib.figures import Picture, picture
from metalib.referee import judge
from metalib.settings import Settings

COLUMNS = [(problem, inner_steps) for problem in ("one weight", "classifier") for inner_steps in (1, 2, 5)]

# Each verdict has a colour and its word is always written out.
VERDICT_COLOURS = {
    "right": "#BFE3D0", "wrong": "#F6C9A8", "cut": "#F5E6A3", "raises": "#E8B9CF",
    "independent": "#DDDDDD", "nan": "#C9D6EE",
}  # fmt: skip


def verdict_rows(versions: Iterable[str]) -> dict[str, list[str]]:
    """{version: its verdict in each of COLUMNS}, on the first outer step of a run with a constant rate.

    >>> from metalib.grid import verdict_rows
    >>> verdict_rows(["data_write"])
    {'data_write': ['cut', 'cut', 'cut', 'cut', 'cut', 'cut']}
    """
    settings = [{"problem": problem, "inner_steps": inner_steps} for problem, inner_steps in COLUMNS]
    return {version: [judge(Settings(version=version, **each)).verdict for each in settings] for version in versions}


def verdict_table(rows: dict[str, list[str]], columns: list[tuple[str, int]] = COLUMNS) -> Picture:
    """The rows as a coloured table, a column for each (name, inner steps); its text is the same, a line a row.

    >>> from metalib.grid import verdict_table
    >>> print(verdict_table({"first_order": ["right", "wrong"]}, [("one weight", 1), ("one weight", 2)]).text)
    first_order: right, wrong
    """
    heads = [f"{name}\nK = {inner_steps}" for name, inner_steps in columns]
    figure = Figure(figsize=(1.7 + 1.15 * len(heads), 0.7 + 0.34 * len(rows)), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    colours = [["white", *(VERDICT_COLOURS[verdict] for verdict in row)] for row in rows.values()]
    table = axes.table(
        [[name, *row] for name, row in rows.items()], cellColours=colours, colLabels=["", *heads],
        colWidths=[1.7, *[1.15] * len(heads)], cellLoc="center", bbox=(0.01, 0.01, 0.98, 0.98),
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for cell in table.get_celld().values():
        cell.set_edgecolor("white")
    return picture(figure, "\n".join(f"{name}: {', '.join(row)}" for name, row in rows.items()))
