"""One more run of a step, to see which arguments its functions never read and which defaults they ran with."""

import contextlib
import dis
import inspect
import os

from metalib.culprit import Finding
from metalib.places import Frame, frame_at, is_library, run_step, stack
from metalib.recording import project, tensors_in
from metalib.suspects import Study
from metalib.trace import Recorder


def watch(step, study: Study, keep) -> "ArgumentWatcher":
    watcher, meta = ArgumentWatcher(), Watched(study.again())
    meta.missing = watcher.missing
    with watcher, contextlib.suppress(Exception):  # that it may raise is known
        keep.run(run_step, step, meta)
    return watcher


class Watched(dict):
    """Meta-parameters that note a name which was looked up in vain."""

    missing: list

    def get(self, key, default=None):
        if key not in self:
            self.missing.append((stack()[0], key))
        return super().get(key, default)


class ArgumentWatcher(Recorder):
    """Notes which functions were given tensors by a parameter that their code never reads, and which defaults ran."""

    def __init__(self):
        super().__init__()
        self.ignored, self.unread, self.numbers, self.seen, self.missing = [], {}, [], set(), []

    def record(self, *args):
        frame, inside = inspect.currentframe(), None
        while frame is not None and not (frame.f_code.co_name == "run_step" and is_library(frame.f_code.co_filename)):
            code = frame.f_code
            if not is_library(code.co_filename):
                self._look(frame, code, frame_at(frame, frame.f_lineno), inside)
                inside = frame
            frame = frame.f_back
        super().record(*args)

    def _look(self, frame, code, here: Frame, inside):
        for name in self.unread.setdefault(code, _unread_parameters(code)):
            if tensors := tensors_in(frame.f_locals.get(name)):
                self.ignored.append((here, name, {self.serial(t) for t in tensors}, {project(t)[0] for t in tensors}))
        if inside is not None and (id(inside), here.lineno) not in self.seen:
            self.seen.add((id(inside), here.lineno))
            inner = inside.f_code
            for name in inner.co_varnames[: inner.co_argcount + inner.co_kwonlyargcount]:
                if isinstance(inside.f_locals.get(name), float | int):
                    self.numbers.append((here, name))

    def ignored_tensors(self, asked: set[int]) -> Finding | None:
        return next((_ignored(here, name) for here, name, ids, _ in reversed(self.ignored) if ids & asked), None)

    def ignored_values(self, numbers: set[float] | None) -> Finding | None:
        found = [(here, name) for here, name, _, those in self.ignored if numbers is None or those & numbers]
        return _ignored(*found[0]) if found else None

    def default_used(self, names: set[str]) -> Finding | None:
        """The call that leaves a parameter with the meta-parameter's name at a plain number."""
        return next((Finding("default_used", here, f"`{name}`") for here, name in self.numbers if name in names), None)

    def missed(self) -> Finding | None:
        """The line that asked for a meta-parameter by another name."""
        found = [(frames[0], key) for frames, key in self.missing if frames]
        return Finding("wrong_name", found[0][0], f"{found[0][1]!r}") if found else None


def _ignored(frame: Frame, name: str) -> Finding:
    where = os.path.basename(frame.filename)
    return Finding("ignored_argument", frame, f"`{name}` of `{frame.function}` in {where}")


def _unread_parameters(code) -> list[str]:
    read = set()
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            read |= set(instruction.argval) if isinstance(instruction.argval, tuple) else {instruction.argval}
    count = code.co_argcount + code.co_kwonlyargcount
    return [name for name in code.co_varnames[:count] if name not in read and name not in code.co_cellvars]
