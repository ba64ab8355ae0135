"""The reading edition builds without a warning, and every link, picture and anchor in it leads somewhere."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-c", "docs", ".", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


class Page(HTMLParser):
    """The targets that a page points at, and the names that can be pointed at in it."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.names, self.pictures, self.kinds, self.text = [], set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.targets.append(attrs["href"])
        if tag in ("img", "script", "link"):
            self.targets.append(attrs.get("src") or attrs.get("href") or "")
        self.kinds.append(attrs.get("type") or "")  # of a script that would make a live widget
        if tag == "img":
            self.pictures.append(attrs)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_link_picture_and_anchor_leads_somewhere(site, pages):
    checked = 0
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not target:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert there.exists(), f"{path.name}: {target}"
            if parts.fragment and there in pages:
                assert unquote(parts.fragment) in pages[there].names, f"{path.relative_to(site)}: {target}"
            checked += 1
    print(f"{len(pages)} pages, {checked} links")
    assert checked > 500


def test_every_notebook_is_there_whole(site, pages):
    for notebook in (ROOT / "notebooks").rglob("*.ipynb"):
        path = site / notebook.relative_to(ROOT).with_suffix(".html")
        page = pages[path]
        text = "".join(page.text)
        assert "What would have fooled you" in text or notebook.name.startswith("00"), notebook.name
        assert len([picture for picture in page.pictures if "_images" in picture.get("src", "")]) >= 2, notebook.name
        assert "application/vnd.jupyter.widget" not in "".join(page.kinds) and "Error displaying widget" not in text


def test_solutions_stay_folded(site):
    for path in (site / "notebooks").glob("*.html"):
        content = path.read_text(encoding="utf-8")
        assert content.count("<summary>Solution") == content.count("<summary>Hint 2") and "<details open" not in content


def test_every_public_function_of_the_reference_is_described(site):
    text = "".join(Page(site / "docs/reference.html").text)
    for name in ("meta_gradient", "referee", "diagnose", "sweep", "save_state", "TrajectoryLab", "check"):
        assert name in text
