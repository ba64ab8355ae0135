"""Run the notebooks top to bottom, each in a clean kernel, and store the outputs that readers and nbval see.

python tests/refresh_outputs.py              all of them
python tests/refresh_outputs.py 02 05        those whose names start so
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def refresh(path: Path) -> None:
    """Execute in the notebook's own folder, as Jupyter does, and keep nothing that changes from run to run."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False, resources=resources).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    wanted = tuple(sys.argv[1:]) or ("",)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if path.name.startswith(wanted):
            refresh(path)
            print(path.name)
