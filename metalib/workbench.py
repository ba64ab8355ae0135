"""The lab with everything: run, compare over seeds and inner steps, keep the runs in a file.

    bench = Workbench("runs.csv")
    bench

Its second tab is the comparison. Its third writes the recorded runs to a table and reads them back, so that they
outlive the kernel: by hand, or after each run.
"""

import html
import os
from pathlib import Path

import ipywidgets as widgets

from metalib.compare import Comparison
from metalib.lab import TrajectoryLab
from metalib.tables import add_csv, load_csv, unknown
from metalib.train import Run


class Files(widgets.VBox):
    """The tab that keeps runs: Save adds what is new to the table, Load adds what the table holds to the lab."""

    def __init__(self, lab: TrajectoryLab, path: str):
        self.lab = lab
        self.path = widgets.Text(path, description="Table", placeholder="runs.csv", layout={"width": "420px"})
        self.auto = widgets.Checkbox(bool(path), description="Save after each run", indent=False)
        save = widgets.Button(description="Save", icon="save", tooltip="add the new runs to the table")
        load = widgets.Button(description="Load", icon="folder-open", tooltip="add the table's runs to the lab")
        save.on_click(lambda _: self.save())
        load.on_click(lambda _: self.load())
        self.status = widgets.HTML("a table of runs in CSV; any spreadsheet reads it").add_class("files-status")
        super().__init__([widgets.HBox([self.path, self.auto]), widgets.HBox([save, load]), self.status])

    def save(self) -> None:
        """Add the lab's finished runs to the table. What it holds already stays; another file is left alone."""

        def work(path: Path) -> str:
            going = self.lab.running  # half a run would stand beside the whole one later
            held = add_csv(self.lab.runs[:-1] if going else self.lab.runs, path)
            return f"{path} holds {_count(held)}" + going * ", without the one that is running"

        self._tell(work)

    def load(self) -> None:
        def work(path: Path) -> str:
            if not path.exists():
                return f"{path} is not there yet: Save makes it"
            runs = load_csv(path)
            new = unknown(runs, self.lab.runs)
            self.lab.add(new)
            return f"{path} holds {_count(runs)}, {len(new)} of them new here"

        self._tell(work)

    def after_a_run(self) -> None:
        if self.auto.value:
            self.save()

    def _tell(self, work) -> None:
        """Do the work on the file that is named, and say how it went: in a sentence also when it cannot be done."""
        name = self.path.value.strip()
        try:
            said = work(Path(name)) if name else "no file is named: write a name such as runs.csv"
        except OSError as error:  # those of writing are sentences already
            said = f"{name} cannot be read: {error.strerror}" if error.errno else str(error)
        except ValueError as error:
            said = f"{error}. The file is left as it is"
        self.status.value = html.escape(said)


def _count(runs: list[Run]) -> str:
    return f"{len(runs)} run{'s' * (len(runs) != 1)}"


class Workbench(TrajectoryLab):
    """The trajectory lab with two more tabs. With a `table`, its runs are there at once, and each new one is added.

    >>> from metalib.settings import Settings
    >>> from metalib.tables import save_csv
    >>> from metalib.train import complete
    >>> from metalib.workbench import Workbench
    >>> save_csv([complete(Settings(outer_steps=3))], "runs.csv")
    >>> len(Workbench("runs.csv").runs)
    1
    """

    def __init__(self, table: str | os.PathLike = "", goal: str = "", **settings):
        if not isinstance(table, str | os.PathLike):
            raise ValueError(f"table is {table!r}: give the name of a file, such as 'runs.csv'")
        super().__init__(goal, **settings)
        self.comparison, self.files = Comparison(self.settings), Files(self, os.fspath(table))
        tabs = [self.panel, self.comparison, self.files]
        self.panel = widgets.Tab(tabs, titles=("Run", "Compare", "Keep")).add_class("workbench")
        if table:
            self.files.load()

    def add(self, runs: list[Run]) -> None:
        """Put finished runs before those of today, and draw."""
        self.runs[:0] = runs
        self._draw()

    def _finish(self, run: Run) -> None:
        super()._finish(run)
        self.files.after_a_run()
