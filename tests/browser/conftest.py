"""A JupyterLab of its own for the browser tests, and a browser to look at it with.

The fixtures last for one module, not for the session: Playwright's sync API keeps an event loop running in the main
thread for as long as it is open, and a test elsewhere that calls `asyncio.run` would fail meanwhile.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from pages import NotebookPage

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--disable-gpu", "--disable-quic", "--disable-sync", "--disable-background-networking"]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "shots")

# Set as defaults, the way an administrator would: no news box over the page, no saving behind the test's back, and
# every cell in the page even when it is scrolled out of sight. Nothing below the last cell, so that a notebook's height
# is known.
DEFAULTS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}


def do_without(sentence: str):
    """Skip on a reader's machine; fail where CI is set, because a browser test that is always skipped tests nothing."""
    if os.environ.get("CI"):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


def find_browser(playwright) -> str:
    named = os.environ.get("CHROMIUM_PATH")
    on_path = [found for name in BROWSERS if (found := shutil.which(name))]
    for path in [named, *on_path, playwright.chromium.executable_path]:
        if path and Path(path).exists():
            return path
    do_without(
        "No Chromium or Chrome was found. Install one, or run `playwright install chromium`, "
        "or set CHROMIUM_PATH to the browser's program."
    )


@pytest.fixture(scope="module")
def browser():
    if sync_playwright is None:
        do_without("Playwright is not installed. Run `pip install playwright`.")
    with sync_playwright() as playwright:
        # Playwright leaves Chromium's sandbox off by itself, so this starts in a container as root too.
        browser = playwright.chromium.launch(executable_path=find_browser(playwright), args=FLAGS)
        yield browser
        browser.close()


class Server:
    """A running JupyterLab: its address, its root folder, and the few REST calls that the tests make."""

    def __init__(self, url: str, token: str, root: Path):
        self.url, self.token, self.root = url, token, root

    def call(self, method: str, path: str, body=None):
        data = None if body is None else json.dumps(body).encode()
        head = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, head, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def end_kernels(self) -> None:
        for session in self.call("GET", "api/sessions"):
            self.call("DELETE", f"api/sessions/{session['id']}")

    def use_theme(self, name: str) -> None:
        self.call("PUT", "lab/api/settings/@jupyterlab/apputils-extension:themes", {"raw": json.dumps({"theme": name})})


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """JupyterLab on a free port, over a copy of the repository, with no file or setting of the user's own.

    It asks for `browser` only so that nothing is started when there is none.
    """
    home, root = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("work") / "repo"
    shutil.copytree(ROOT, root, ignore=LEFT_OUT)
    defaults = home / "config" / "labconfig" / "default_setting_overrides.json"
    defaults.parent.mkdir(parents=True)
    defaults.write_text(json.dumps(DEFAULTS))
    token = secrets.token_hex()
    own_folders = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "IPYTHONDIR": home / "ipython",
    }
    env = {**os.environ, **{name: str(path) for name, path in own_folders.items()}, "JUPYTER_TOKEN": token}
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}"]
    log = home / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, env=env, cwd=root, stdout=out, stderr=subprocess.STDOUT)
    try:
        server = Server(f"http://127.0.0.1:{port}", token, root)
        wait_for_answer(server, process, log)
        yield server
    finally:
        end(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_answer(server: Server, process: subprocess.Popen, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.call("GET", "api/status")
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}", pytrace=False)


def end(process: subprocess.Popen) -> None:
    """End the server, which ends its kernels; whatever is still there afterwards is killed, and the test fails."""
    if process.poll() is not None:
        return
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.terminate()
    _, left = psutil.wait_procs(family, timeout=20)
    for one in left:
        one.kill()
    process.wait(10)
    assert not left, f"still running 20 s after the server was told to end: {left}"


@pytest.fixture
def notebook(browser, server):
    """A page that opens a notebook. Errors that its JavaScript throws fail the test at its end."""
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    page = context.new_page()
    page.set_default_timeout(30_000)
    thrown = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    yield NotebookPage(page, server)
    context.close()
    server.end_kernels()
    assert not thrown, f"errors thrown in the page: {thrown}"


@pytest.fixture
def shots(tmp_path) -> Path:
    """Where screenshots go, for a person to look at: the folder in SHOTS, or pytest's own."""
    folder = Path(os.environ.get("SHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
