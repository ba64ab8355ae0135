"""Values that go nowhere: weights that are never read, a meta-parameter that is never used, a rule without a slope."""

import ast
import dis
import inspect
import os
import textwrap

from metalib.culprit import Finding, place, readable
from metalib.places import Frame, frame_at, is_library, raising_frames, run_step, stack
from metalib.suspects import Study, moves, path
from metalib.trace import Call, Recorder, tensors_in


def unread_result(study: Study, step, keep) -> Finding:
    """The outer loss does not move with the meta-parameter: the last place where something still did."""
    base = study.base
    way = path(base, base.last)
    stop = _standstill(study, way)
    if stop and readable(stop.name) in WITHOUT_SLOPE:
        return Finding("flat", place(stop), readable(stop.name))
    used, leaves = set(way), {id(leaf) for leaf in study.leaves.values()}
    lost = [i for i, v in enumerate(base.values) if moves(study, i) and i not in used and v.tensor not in leaves]
    lost = [i for i in lost if base.values[i].producer is not None and base.calls[base.values[i].producer].frames]
    watcher = watch(step, study, keep)
    if not lost and not stop and (found := watcher.default_used(set(study.direction)) or watcher.missed()):
        return found
    if found := watcher.ignored_weights({base.values[i].shape for i in lost} if lost else None):
        return found
    if stop:
        return Finding("flat", place(stop), readable(stop.name))
    if not lost:
        return Finding("meta_unused", None)
    weights = {base.values[read].shape for call in base.calls if call.name == "grad" for read in call.reads[1:]}
    like_weights = [i for i in lost if base.values[i].shape in weights]
    call = base.calls[base.values[(like_weights or lost)[-1]].producer]
    return Finding("result_unused", _thrown_away(call) or place(call))


def _standstill(study: Study, way: list[int]) -> Call | None:
    """The last call on the way to the loss that reads something that moves; what it gives does not move."""
    base, on_way = study.base, set(way)
    readers = [c for c in base.calls if c.frames and any(moves(study, read) for read in c.reads)]
    readers = [c for c in readers if c.writes and not any(moves(study, made) for made in c.writes)]
    reach = [c for c in readers if set(c.writes) & on_way]
    return (reach or readers or [None])[-1]


def _thrown_away(call: Call) -> Frame | None:
    """The line that calls a function for its result and then drops it."""
    for frame in call.frames[1:]:
        try:
            statement = ast.parse(frame.source).body
        except SyntaxError:
            continue
        if statement and isinstance(statement[0], ast.Expr) and isinstance(statement[0].value, ast.Call):
            return frame
    return None


def unused_weights(step, study: Study, keep, error: Exception) -> Finding | None:
    """autograd.grad found the weights unused: a loop variable that was only renamed, or an argument never read."""
    for frame in raising_frames(error):
        if found := rebound_name(frame):
            return found
    watcher = watch(step, study, keep)
    taker = next((call for call in reversed(watcher.calls) if call.name == "grad"), None)
    asked = {watcher.values[read].tensor for read in taker.reads[1:]} if taker else set()
    return watcher.ignored_tensors(asked)


def rebound_name(frame: Frame) -> Finding | None:
    """A loop variable that is assigned and then never read: `for new, old in zip(...): old = new`."""
    tree, first = function_tree(frame)
    if tree is None:
        return None
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        for statement in loop.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                if name in targets and name not in read:
                    line = first + statement.lineno - 1
                    return Finding("rebound_name", Frame(frame.filename, line, frame.function), f"`{name}`")
    return None


def function_tree(frame: Frame):
    """(the syntax tree of the function that a frame is in, its first line); (None, 0) without a source."""
    source, number = [], frame.first
    line = Frame(frame.filename, number)
    while text := _raw(line):
        source.append(text)
        number += 1
        line = Frame(frame.filename, number)
    block = inspect.getblock(source) if source else []
    try:
        return ast.parse(textwrap.dedent("".join(block))), frame.first
    except SyntaxError:
        return None, 0


def _raw(frame: Frame) -> str:
    import linecache

    return linecache.getline(frame.filename, frame.lineno)


def watch(step, study: Study, keep) -> "ArgumentWatcher":
    watcher, meta = ArgumentWatcher(), Watched(study.again())
    meta.missing = watcher.missing
    keep.restore()
    with watcher:
        try:
            run_step(step, meta)
        except Exception:
            pass
    return watcher


WITHOUT_SLOPE = {"round", "floor", "ceil", "trunc", "sign", "sgn", "argmax", "argmin", "gt", "ge", "lt", "le", "eq", "ne"}
WITHOUT_SLOPE |= {"clamp", "clip", "relu", "hardtanh", "threshold", "heaviside", "one_hot", "topk", "where", "long", "int"}


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
                self.ignored.append((here, name, {id(t) for t in tensors}, {tuple(t.shape) for t in tensors}))
        if inside is not None and (id(inside), here.lineno) not in self.seen:
            self.seen.add((id(inside), here.lineno))
            inner = inside.f_code
            for name in inner.co_varnames[: inner.co_argcount + inner.co_kwonlyargcount]:
                if isinstance(inside.f_locals.get(name), float | int):
                    self.numbers.append((here, name))

    def ignored_tensors(self, asked: set[int]) -> Finding | None:
        return next((_ignored(here, name) for here, name, ids, _ in reversed(self.ignored) if ids & asked), None)

    def ignored_weights(self, shapes: set[tuple] | None) -> Finding | None:
        found = [(here, name) for here, name, _, those in self.ignored if shapes is None or those & shapes]
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
