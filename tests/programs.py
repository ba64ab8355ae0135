"""The programs that the doctor's tests look at: a file as a module, and its marked lines."""

import importlib.util
import re
import sys
from pathlib import Path


def load(path: Path):
    """The file as a module; it has to be in sys.modules, as any module that somebody imports."""
    name = f"{path.parent.name}_{path.stem}".replace("-", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def marked(path: Path) -> set[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {at for at, line in enumerate(lines, start=1) if re.search(r"# (GUILTY|ALSO)", line)}
