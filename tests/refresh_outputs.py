"""Run the notebooks top to bottom, each in a clean kernel, and store the outputs that readers and nbval see.

python tests/refresh_outputs.py              all of them
python tests/refresh_outputs.py 02 05        those whose names start so, in every language
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def join_streams(outputs: list) -> list:
    """Text that follows text in one piece: a kernel on a busy machine sends it in several."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def refresh(path: Path) -> None:
    """Execute in the notebook's own folder, as Jupyter does, and keep nothing that changes from run to run."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False, resources=resources).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = join_streams(cell.outputs)
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    wanted = tuple(sys.argv[1:]) or ("",)
    for path in sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("zh/*.ipynb")]):
        if path.name.startswith(wanted):
            refresh(path)
            print(path.relative_to(NOTEBOOKS))
