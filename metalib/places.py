"""Where in somebody's code a call stands: the lines of the user's own files, without those of libraries and of ours."""

import inspect
import linecache
import os
import sysconfig
from typing import NamedTuple

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
INSIDE = os.path.join(HERE, "")
TOOLS = {
    "places",
    "recording",
    "unseen",
    "trace",
    "keep",
    "watcher",
    "timeline",
    "failures",
    "referee",
    "doctor",
    "outer",
}
OURS = {os.path.join(HERE, f"{name}.py") for name in TOOLS | {"cells"}}
PLACES = {*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), os.path.dirname(torch.__file__)}
LIBRARIES = tuple(os.path.join(place, "") for place in PLACES)


class Frame(NamedTuple):
    """One level of the stack below a step, at the time of a call. `key` tells two calls of one function apart; `first`
    is the line where the function begins, with its decorators."""

    filename: str
    lineno: int
    function: str = ""
    key: int = 0
    first: int = 0

    @property
    def source(self) -> str:
        return linecache.getline(self.filename, self.lineno).strip()


def frame_at(frame, lineno: int) -> Frame:
    code = frame.f_code
    return Frame(code.co_filename, lineno, code.co_name, id(frame), code.co_firstlineno)


def run_step(step, meta):
    """Every recorded step is called from here, so that a stack can be cut off below."""
    return step(meta)


def line_in(frame: Frame, beside: Frame) -> str:
    """How to name a line next to another one: with its file where that is another, unless both are notebook cells."""
    if frame.filename == beside.filename or "ipykernel_" in frame.filename:
        return f"line {frame.lineno}"
    return f"line {frame.lineno} of {os.path.basename(frame.filename)}"


def is_library(filename: str) -> bool:
    """metalib's own loops count as the user's: they are diagnosed, too, wherever pip has put them."""
    if filename.startswith(INSIDE):
        return filename in OURS
    return filename.startswith(("<frozen", "<string>", *LIBRARIES))


def stack() -> tuple[list[Frame], str]:
    """(the user's frames from the innermost outwards, the file of the innermost frame of all)."""
    frame, frames, inner = inspect.currentframe(), [], None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run_step" and code.co_filename in OURS:
            break
        if inner is None and code.co_filename not in OURS:
            inner = code.co_filename
        if not is_library(code.co_filename):
            frames.append(frame_at(frame, frame.f_lineno))
        frame = frame.f_back
    return frames, inner or ""


def raising_frames(error: Exception) -> list[Frame]:
    """The user's lines in an exception's traceback, from the innermost outwards."""
    found, trace = [], error.__traceback__
    while trace is not None:
        if not is_library(trace.tb_frame.f_code.co_filename):
            found.append(frame_at(trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found[::-1]
