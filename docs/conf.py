"""The reading edition: the notebooks with their stored outputs, and the reference, as a static site.

    pip install -e ".[site]" && sphinx-build -c docs . build/site

Nothing is executed: the pages show what is stored in the notebooks.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))  # for the slug function, by its name
sys.path.insert(0, str(ROOT / "binder"))
from host import stated  # noqa: E402

project = "Learning a learning rate in PyTorch"
author = "the metalib authors"
language = "en"
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/**.ipynb", "*.md", "tests/benchmarks/results/*.md"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]

nb_execution_mode = "off"
# A live widget cannot live here: its cell also stores the picture of the same settings.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
myst_enable_extensions = ["dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type"]


def jupyterlab_slug(heading: str) -> str:
    """The anchor that JupyterLab gives to a heading, so that one link serves both."""
    return re.sub(r"[`*$\\]", "", heading).strip().replace(" ", "-")


myst_heading_slug_func = "conf.jupyterlab_slug"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def as_written(app, what, name, obj, options, lines):
    """Our docstrings are plain text with a layout of their own, to be read in an editor: kept line for line.

    The example at the end is a block of its own, coloured as Python.
    """
    start = next((at for at, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    blocks = {"text": lines[:start], "pycon": lines[start:]}
    lines[:] = [""]
    for language, block in blocks.items():
        lines += [f".. code-block:: {language}", "", *("   " + line for line in block), ""] if block else []


def aside(app, doctree):
    """The table of the benchmarks is reached from the README and is in no table of contents."""
    if app.env.docname.startswith("tests/"):
        app.env.metadata[app.env.docname]["orphan"] = True


def setup(app):
    app.connect("autodoc-process-docstring", as_written)
    app.connect("doctree-read", aside)


html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "Learning a learning rate in PyTorch"
html_theme_options = {"use_download_button": True, "show_toc_level": 2, "home_page_in_toc": True}
repository = os.environ.get("METALIB_REPOSITORY") or stated()  # an address such as https://github.com/you/metalib
if repository:
    html_theme_options |= {
        "repository_url": repository,
        "use_repository_button": True,
        "launch_buttons": {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"},
    }
