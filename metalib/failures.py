"""When a step raises: the line that is to blame, which is often not the line that raised."""

import contextlib
import os
import re

import torch
from torch.autograd.graph import saved_tensors_hooks

from metalib.culprit import Finding, compile_line, explain_break, readable, switched_off
from metalib.doubts import checkpoint_line
from metalib.functions import custom_function, function_line, graph_nodes
from metalib.places import line_in, raising_frames, run_step
from metalib.recording import Recording, address, edge, project
from metalib.suspects import Study, moves
from metalib.trace import Recorder
from metalib.unused import unused_weights

IN_PLACE = ("modified by an inplace operation", "saved tensor that has been detached in-place", "range for TensorList")
GRADS = ("grad", "backward")


def explain_error(study: Study, error: Exception, step, keep) -> Finding:
    """The cause of `error`, raised by the step itself or when its loss was differentiated."""
    base, message = study.base, str(error)
    raised = next(iter(raising_frames(error)), None)
    if "a leaf Variable that requires grad" in message or "a view of a leaf Variable" in message:
        return Finding("inplace_on_leaf", raised)
    if any(part in message for part in IN_PLACE):
        found = checkpoint_line(base) if "checkpoint" in message else None
        return (
            found
            or overwritten(step, study, keep, error)
            or Finding("inplace_on_saved", raised, "an earlier operation")
        )
    if "backward through the graph a second time" in message:
        return _freed(base) or Finding("graph_freed", raised)
    if "once_differentiable" in message or "double backward" in message.lower() or "derivative for" in message:
        return _no_second_derivative(base, message) or Finding("no_double_backward", raised, "of an operation")
    if "checkpoint" in message.lower():
        return checkpoint_line(base) or Finding("checkpoint", raised)
    if "nference tensor" in message:
        return next((switched_off(call) for call in base.calls if call.inference and call.frames), None) or Finding(
            "inference_mode", raised
        )
    if "appears to not have been used" in message:
        return unused_weights(step, study, keep, error) or Finding("unused_input", raised)
    if "does not require grad" in message:
        inputs = "differentiated" in message
        return _lost_history(study, inputs) or Finding("frozen_input" if inputs else "no_graph", raised)
    if isinstance(error, TypeError) and "cannot assign" in message and "as parameter" in message:
        return Finding("not_a_parameter", raised)
    first = message.splitlines()[0][:120] if message else ""
    return Finding("raised", raised, f"{type(error).__name__}: {first}")


def overwritten(step, study: Study, keep, error: Exception | None = None) -> Finding | None:
    """Run once more and watch what backward has saved: which of it was written to afterwards, and first by which line.

    Without an `error` that was raised about it, compare the contents: `.data` writes do not raise the version.
    """
    silent, known = error is None, () if error is None else type(error)
    recorder, spoilt = Recorder(), []

    def pack(t):
        return t.detach(), len(recorder.calls), address(t), t._version, project(t)

    def unpack(saved):
        t, at, place, version, content = saved
        if project(t) != content if silent else t._version != version:
            spoilt.append((at, place))
        return t

    leaves = study.again()
    with recorder, saved_tensors_hooks(pack, unpack), contextlib.suppress(known):
        loss = keep.run(run_step, step, leaves)
        torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    calls, writes = recorder.calls, []
    for saved_at, place in spoilt:
        later = range(saved_at + 1, len(calls))
        writes += [(at, saved_at) for at in later if place in calls[at].wrote and calls[at].frames][:1]
    if not writes and not silent:
        lists = [at for at, call in enumerate(calls) if call.name.startswith("_foreach") and call.wrote and call.frames]
        writes = [(at, at) for at in lists[:1]]
    if not writes:
        return None
    at, saved_at = min(writes)
    at, saver = _first_of_a_row(calls, at), calls[saved_at]
    where = f" on {line_in(saver.frames[0], calls[at].frames[0])}" if saver.frames else ""
    through_data = silent and calls[at].name != "data.__set__"
    cause = "silent_write" if through_data else "data_write" if silent else "inplace_on_saved"
    return Finding(cause, calls[at].frames[0], f"{readable(saver.name)}{where}")


def _first_of_a_row(calls, at: int) -> int:
    """Weights are often written one after the other on successive lines; all of them want the same repair."""
    first = at
    for earlier in range(at - 1, -1, -1):
        one, other = calls[earlier], calls[first]
        alike = one.wrote and one.frames and one.name == other.name and one.frames[0].key == other.frames[0].key
        if alike and one.frames[0].lineno == other.frames[0].lineno - 1:
            first = earlier
    return first


def _freed(base: Recording) -> Finding | None:
    """The first call that freed a part of the graph which a later one, or the meta-gradient, goes through again."""
    takers = [call for call in base.calls if call.name in GRADS and call.frames]
    if base.loss is None and not takers:
        return None
    last = [base.values[read].edge for read in takers[-1].reads[:1]] if base.loss is None else []
    last += [edge(base.loss)] if base.loss is not None and base.loss.requires_grad else []
    needed = {node for node in graph_nodes(last) if node.next_functions}
    for call in takers if base.loss is not None else takers[:-1]:
        if call.options.get("create_graph") or call.options.get("retain_graph"):
            continue
        if needed & set(graph_nodes([base.values[read].edge for read in call.reads[:1]])):
            return Finding(
                "graph_freed", call.frames[0], "; the outer loss, or a later gradient, runs through it again"
            )
    return None


def _no_second_derivative(base: Recording, message: str) -> Finding | None:
    nodes = graph_nodes([value.edge for value in base.values])
    for node in nodes:
        if (function := custom_function(node)) and ("once" in message or hasattr(function.backward, "__wrapped__")):
            return Finding("no_double_backward", function_line(function), f"of {function.__name__}")
    if "aot_autograd" in message:
        line = compile_line(base)
        return Finding("compiled", line) if line else None
    named = re.search(r"derivative for '?(?:aten::)?_*(\w+?)_backward", message)
    called = [c for c in base.calls if named and c.frames and _alike(named.group(1), c.name)]
    return Finding("no_double_backward", called[0].frames[0], f"of {readable(called[0].name)}") if called else None


def _alike(operation: str, name: str) -> bool:
    """Is `operation`, as an error calls it, what the function `name` runs? One may go on where the other ends."""
    return len(os.path.commonprefix([operation, name.strip("_")])) >= max(4, min(len(name), 12) - 1)


def _lost_history(study: Study, inputs: bool) -> Finding | None:
    """Nothing requires grad where a gradient is taken: the line on the way there that dropped the history."""
    base = study.base
    taker = next((call for call in reversed(base.calls) if call.name in GRADS), None)
    roots = [] if taker is None else taker.reads[1:] if inputs else taker.reads[:1]
    inputs_asked = {base.values[read].tensor for read in taker.reads[1:]} if taker else set()
    dropped, seen, todo = [], set(), [r for r in roots if not base.values[r].wants_grad]
    while todo:
        index = todo.pop()
        producer = base.values[index].producer
        if index in seen or base.values[index].wants_grad or producer is None:
            continue
        seen.add(index)
        call = base.calls[producer]
        wanted = [base.values[read].edge for read in call.reads if base.values[read].edge is not None]
        computed = any(edge.node.next_functions for edge in wanted)
        asked = {base.values[read].tensor for read in call.reads} & inputs_asked
        # Starting values may well be detached, but not the very tensors whose gradient is asked for.
        if call.frames and wanted and (computed or asked or moves(study, index)):
            dropped.append((call.name in GRADS, -producer, index))
        todo += call.reads
    found = explain_break(study, min(dropped)[2]) if dropped else None
    return None if found is None or found.cause == "frozen" else found
