"""Values that go nowhere: weights that are never read, a meta-parameter that is never used, a rule without a slope."""

import ast
import inspect
import linecache
import textwrap

from metalib.culprit import Finding, place, readable
from metalib.places import Frame, raising_frames
from metalib.recording import Call
from metalib.suspects import Study, moves, path
from metalib.watcher import watch

WITHOUT_SLOPE = {
    "round",
    "floor",
    "ceil",
    "trunc",
    "sign",
    "sgn",
    "argmax",
    "argmin",
    "gt",
    "ge",
    "lt",
    "le",
    "eq",
    "ne",
}
WITHOUT_SLOPE |= {
    "clamp",
    "clip",
    "relu",
    "hardtanh",
    "threshold",
    "heaviside",
    "one_hot",
    "topk",
    "where",
    "long",
    "int",
}


def unread_result(study: Study, step, keep) -> Finding:
    """The outer loss does not move with the meta-parameter: the last place where something still did."""
    base = study.base
    way = path(base, base.last)
    stop = _standstill(study, way)
    if stop and readable(stop.name) in WITHOUT_SLOPE:
        return Finding("flat", place(stop), readable(stop.name))
    used, leaves = set(way), base.leaves
    lost = [i for i, v in enumerate(base.values) if moves(study, i) and i not in used and v.tensor not in leaves]
    lost = [i for i in lost if base.values[i].producer is not None and base.calls[base.values[i].producer].frames]
    watcher = watch(step, study, keep)
    if not lost and not stop and (found := watcher.default_used(set(study.direction)) or watcher.missed()):
        return found
    if found := watcher.ignored_values({base.values[i].number for i in lost} if lost else None):
        return found
    if stop:
        return Finding("flat", place(stop), readable(stop.name))
    if not lost:
        return rebound_meta(step) or Finding("meta_unused", None)
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


def rebound_meta(step) -> Finding | None:
    """`rate = meta["rate"]`, and further down the same name for something else."""
    code = getattr(step, "__code__", None)
    tree, first = (
        function_tree(Frame(code.co_filename, code.co_firstlineno, "", 0, code.co_firstlineno)) if code else (None, 0)
    )
    if tree is None or not code.co_argcount:
        return None
    meta = code.co_varnames[0]
    taken: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.Call):
            inside = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            if meta in inside:
                taken |= {t.id: node.lineno for t in node.targets if isinstance(t, ast.Name)}
    stores = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in taken]
    again = sorted((n.lineno, n.id) for n in stores if n.lineno > taken[n.id])
    if not again:
        return None
    line, name = again[0]
    return Finding("shadowed", Frame(code.co_filename, first + line - 1, step.__name__), f"`{name}`")


def function_tree(frame: Frame):
    """(the syntax tree of the function that a frame is in, its first line); (None, 0) without a source."""
    try:
        block = inspect.getblock(linecache.getlines(frame.filename)[frame.first - 1 :])
        return ast.parse(textwrap.dedent("".join(block))), frame.first
    except (SyntaxError, IndexError):
        return None, 0


def file_tree(filename: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return ast.Module([], [])
