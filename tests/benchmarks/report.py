"""From results.json to table.md and ratios.png, in the same folder: python report.py FOLDER."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from contestants import PLAIN  # noqa: E402
from matplotlib.ticker import LogLocator, NullFormatter  # noqa: E402

# Okabe and Ito's colours, told apart with any kind of colour vision; the markers tell them apart in grey.
STYLES = {
    PLAIN: ("#000000", "", "-"),
    "metalib": ("#D55E00", "o", "-"),
    "higher": ("#0072B2", "s", "--"),
    "torchopt": ("#009E73", "^", "--"),
    "learn2learn": ("#CC79A7", "D", "--"),
    "JAX, reverse": ("#E69F00", "v", ":"),
    "JAX, forward": ("#56B4E9", "P", ":"),
}


def _three(values) -> str:
    """The median, then minimum and maximum, each in two figures."""
    low, middle, high = (f"{value:#.2g}" if value < 9.95 else f"{value:.0f}" for value in values)
    return f"{middle} ({low}–{high})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown, our own rows in bold."""
    bold = [[f"**{name}**" if name.startswith("metalib") else name, *cells] for name, *cells in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *bold])


def times_table(name: str, times: dict) -> str:
    """One task: a row for each contestant, a column for each K."""
    rows = []
    for who in next(iter(times.values())):
        rows.append([who, *(_three(found[who]["ratio"]) for found in times.values())])
        if who == PLAIN:
            rows[-1][1:] = [f"1 ({1000 * found[who]['cpu seconds']:.3g} ms)" for found in times.values()]
    return _table([name, *(f"K = {steps}" for steps in times)], rows)


def sweep_table(sweep: dict) -> str:
    rows = []
    for who in next(iter(sweep.values())):
        cells = [who]
        for runs, found in sweep.items():
            gain = _three([1 / ratio for ratio in reversed(found[who]["ratio"])])
            cells += [f"{int(runs) / found[who]['cpu seconds']:,.0f}", "1" if who == PLAIN else gain]
        rows.append(cells)
    return _table(["sweep, K = 20", *(head for runs in sweep for head in (f"{runs} runs: runs / s", "gain"))], rows)


def memory_table(memory: dict) -> str:
    """Whole MiB; with minimum and maximum where the fresh processes did not agree."""

    def cell(low, middle, high):
        return f"{middle:.0f} ({low:.0f}–{high:.0f})" if high - low > 10 else f"{middle:.0f}"

    steps = sorted({k for grown in memory.values() for k in grown}, key=int)
    rows = [[who, *(cell(*grown[k]) if k in grown else "" for k in steps)] for who, grown in memory.items()]
    return _table(["MiB, 784-256-10", *(f"K = {k}" for k in steps)], rows)


def first_table(first: dict) -> str:
    return _table(["first outer step", "CPU seconds"], [[who, _three(seconds)] for who, seconds in first.items()])


def markdown(results: dict) -> str:
    """All tables, what they hold in a sentence each, and what was measured where."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    parts = [
        f"Measured on {results['date']} with Python {results['python']}, {versions}, on one thread of "
        f"{results['cpu']}. In float64 all meta-gradients agree to {results['deviation']:.0e}.",
        f"CPU time of an outer step, Adam included, as a ratio to the plain loop of the same round: median "
        f"(minimum–maximum) of {results['rounds']} rounds.",
        *(times_table(name, times) for name, times in results["times"].items()),
    ]
    if results["sweep"]:
        parts += ["Runs in a CPU second, and the gain over a plain loop:", sweep_table(results["sweep"])]
    if "memory" in results:
        parts += ["Growth of the peak memory over a warm-up with K = 2:", memory_table(results["memory"])]
    if "first" in results:
        parts += ["The first outer step of the classifier, K = 5, in a fresh process:", first_table(results["first"])]
    notes = results["notes"] | results["left out"]
    parts += [f"{name}: `{note}`" for name, note in notes.items()]
    return "\n\n".join(parts) + "\n"


def _lines(axes, found: dict, steps: list, values) -> None:
    """One line for each contestant; `values` gives minimum, median and maximum at each K."""
    for who, (colour, marker, line) in STYLES.items():
        if who not in found:
            continue
        low, middle, high = zip(*values(found[who]), strict=True)
        places = range(len(middle))
        axes.plot(places, middle, color=colour, marker=marker, linestyle=line, label=who, markersize=5)
        axes.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set(yscale="log", xlabel="inner steps K")
    bottom, top = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top > 8 * bottom else (1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(steps)), steps)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def draw(results: dict, path: Path) -> None:
    """A panel for each task's ratios, one for the memory."""
    panels = len(results["times"]) + ("memory" in results)
    figure, grid = plt.subplots(1, panels, figsize=(3.3 * panels, 4.2), layout="constrained", squeeze=False)
    every = grid[0]
    for axes, (name, times) in zip(every, results["times"].items(), strict=False):
        found = {who: [k[who]["ratio"] for k in times.values()] for who in next(iter(times.values()))}
        _lines(axes, found, list(times), lambda ratios: ratios)
        axes.set_title(name, fontsize=11)
    every[0].set_ylabel("CPU time, plain loop = 1")
    if "memory" in results:
        memory = results["memory"]
        steps = max((list(grown) for grown in memory.values()), key=len)
        _lines(every[-1], memory, steps, lambda grown: [[max(mib, 1) for mib in three] for three in grown.values()])
        every[-1].set(title="memory, 784-256-10", ylabel="growth of the peak, MiB")
        every[-1].title.set_fontsize(11)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    results = json.loads((folder / "results.json").read_text())
    text = markdown(results)
    (folder / "table.md").write_text(text)
    if results["times"]:
        draw(results, folder / "ratios.png")
    print(text)
