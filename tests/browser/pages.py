"""What the browser tests do with a page: open a notebook, run its cells, work the trajectory lab."""

import base64
import re
import time

import nbformat

try:
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)
except ImportError:  # the fixture `browser` then skips or fails every test before it gets here
    expect = None

ERROR = "application/vnd.jupyter.error"
STDERR = "application/vnd.jupyter.stderr"
PROMPT = ".jp-InputPrompt"
AROUND = 160  # pixels: room for the menu bar, the tabs, the toolbar and the status bar


class NotebookPage:
    """One notebook in JupyterLab."""

    def __init__(self, page, server):
        self.page, self.server = page, server
        self.cells = page.locator(".jp-Notebook .jp-Cell")
        self.errors = page.locator(f".jp-OutputArea-output[data-mime-type='{ERROR}']")
        self.warnings = page.locator(f".jp-OutputArea-output[data-mime-type='{STDERR}']")
        self.broken_widgets = page.locator(".jupyter-widgets-error-widget")
        self.widgets = page.locator(".jp-OutputArea-output > .jupyter-widgets")

    def open(self, path: str) -> None:
        """`path` is relative to the repository. Ready when there is a kernel and it is idle."""
        self.page.goto(f"{self.server.url}/lab/tree/{path}?reset&token={self.server.token}")
        # The execution indicator says idle before there is a kernel, and a Run All would then ask for one.
        self.page.get_by_text("| Idle").wait_for()

    def run_all(self, timeout: float = 60) -> None:
        """Run all cells; return when none is waiting any more, whether they ended well or not."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]
                    .map(prompt => prompt.textContent)
                return prompts.some(text => /\\d/.test(text)) && !prompts.some(text => text.includes('*'))
            }""",
            timeout=1000 * timeout,
        )
        self.page.get_by_text("| Idle").wait_for()

    def ask(self, code: str) -> str:
        """Run code in a new cell at the end of the notebook, as a reader would, and return what it printed."""
        self.page.locator(".jp-Notebook-footer").click()
        cell = self.page.locator(".jp-Notebook .jp-CodeCell").last
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Control+Enter")
        cell.locator(PROMPT, has_text=re.compile(r"\d")).wait_for()
        if "print(" in code:  # an output may be put into the page after the prompt
            cell.locator(".jp-OutputArea-output").first.wait_for()
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts()).strip()

    def cells_with_errors(self) -> list[int]:
        return [number for number, cell in enumerate(self.cells.all()) if cell.locator(self.errors).count()]

    def saved(self, path):
        """Save the notebook, and return what then is in the file at `path`."""
        self.page.keyboard.press("Escape")
        with self.page.expect_response(lambda answer: answer.request.method == "PUT" and "api/contents" in answer.url):
            self.page.keyboard.press("ControlOrMeta+s")
        return nbformat.read(path, as_version=4)

    def picture(self, path) -> None:
        """Screenshot of the whole notebook: the page is made as tall as it needs to be."""
        notebook = self.page.locator(".jp-WindowedPanel-outer").first
        height = notebook.evaluate("panel => panel.scrollHeight")
        self.page.set_viewport_size({"width": 1280, "height": min(height + AROUND, 16_000)})
        notebook.evaluate("panel => panel.scrollTo(0, 0)")  # running all cells has scrolled to the last
        self.page.wait_for_timeout(300)
        self.page.locator(".jp-NotebookPanel").first.screenshot(path=path)


class LabPanel:
    """The trajectory lab in a page."""

    def __init__(self, page):
        self.page = page
        self.panel = page.locator(".trajectory-lab")
        self.image = self.panel.locator("img.trajectory-plot")
        self.run, self.stop, self.clear = map(self._button, ("Run", "Stop", "Clear"))
        self.status = self.panel.locator(".lab-status .widget-html-content")
        self.bar = self.panel.locator(".progress-bar")

    def _button(self, name: str):
        return self.panel.get_by_role("button", name=name)

    def control(self, description: str):
        return self.panel.get_by_label(description)

    def plot(self) -> bytes:
        """The PNG that the browser shows now. It comes here as one string: an array of numbers would take a second."""
        return base64.b64decode(
            self.image.evaluate(
                """async image => {
                    for (let tries = 1; ; tries++) {
                        try {
                            const bytes = new Uint8Array(await (await fetch(image.src)).arrayBuffer())
                            return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))
                        } catch (error) { if (tries > 50) throw error }  // replaced by the next frame meanwhile
                        await new Promise(again => setTimeout(again, 5))
                    }
                }"""
            )
        )

    def next_plot(self, old: bytes, seconds: float = 10) -> bytes:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (new := self.plot()) != old:
                return new
            self.page.wait_for_timeout(30)
        raise AssertionError(f"the picture did not change in {seconds} s; the status is {self.status.inner_text()!r}")

    # The page puts a new picture in place a moment after the status that was sent with it. So a picture is never read
    # once after a status; it is waited for.

    def settled_plot(self, seconds: float = 10) -> bytes:
        """The picture once it stands still: two equal reads, longer apart than the lab's frames are."""
        old, deadline = self.plot(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.page.wait_for_timeout(300)
            if (new := self.plot()) == old:
                return new
            old = new
        raise AssertionError(f"the picture still moves after {seconds} s; the status is {self.status.inner_text()!r}")

    def wait_for_plot(self, expected: bytes, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while self.plot() != expected:
            assert time.monotonic() < deadline, f"another picture after {seconds} s: {self.status.inner_text()!r}"
            self.page.wait_for_timeout(30)

    def progress(self) -> float:
        """How far the bar is, in percent."""
        return float(self.bar.evaluate("bar => parseFloat(bar.style.width)"))

    def watch_stop(self):
        """Take the time in the page itself, from the click on Stop to the word "stopped", to leave out our own delay.

        Returns a function that gives the seconds.
        """
        times = self.status.evaluate_handle(
            """(status, stop) => {
                const times = {}
                stop.addEventListener('click', () => { times.click = performance.now() }, true)
                new MutationObserver(() => {
                    if (status.textContent.startsWith('stopped')) times.word ??= performance.now()
                }).observe(status, { childList: true, characterData: true, subtree: true })
                return times
            }""",
            self.stop.element_handle(),
        )
        return lambda: times.evaluate("times => (times.word - times.click) / 1000")

    def screenshot(self, path) -> None:
        self.panel.screenshot(path=path)
