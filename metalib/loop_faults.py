"""The faults of a training loop that runs: one rule each, over the timeline of a recorded loop."""

import ast
from collections import defaultdict

from metalib.culprit import Finding, place
from metalib.learned import never_reached, wrong_tensors
from metalib.places import Frame
from metalib.timeline import Event, LoopRecorder
from metalib.unused import file_tree

MANY = 3  # as many repetitions make a habit


def find_fault(seen: LoopRecorder) -> Finding | None:
    """The first fault that the timeline shows; None when it shows none."""
    for rule in (
        _never_stepped,
        wrong_tensors,
        never_reached,
        _order,
        _not_cleared,
        _rebuilt,
        _growing,
        _kept_losses,
        _cycle,
        _buffers,
        _same_rows,
        _piled,
    ):
        if found := rule(seen):
            return found
    return None


def _order(seen: LoopRecorder) -> Finding | None:
    """Steps without a gradient: taken before backward, or after the gradient was cleared."""
    since: dict[int, list[Event]] = defaultdict(list)
    empty: dict[int, list] = defaultdict(list)
    for event in seen.events:
        if event.kind == "step":
            mine = set(event.leaves)
            past = [e for e in since.pop(id(event.optimizer), []) if mine & set(e.leaves)]
            empty[id(event.optimizer)].append((event, past) if not event.full else None)
        for used in {id(e.optimizer) for e in seen.events if e.kind == "step"}:
            since[used].append(event)
    for steps in empty.values():
        if len(steps) < 2 or None in steps:
            continue
        first, past = steps[0]
        if not any(e.kind == "backward" for e in past):
            later = any(e.kind == "backward" for _, between in steps[1:] for e in between)
            return Finding("step_first", first.place) if later else None
        cleared = [e for e in past if e.kind == "zero" and e.full]
        if cleared:
            return Finding("cleared_early", cleared[-1].place)
    return None


def _not_cleared(seen: LoopRecorder) -> Finding | None:
    """A step uses gradients that were added to those of an earlier step."""
    used, added = set(), set()
    times, cleared_other, taken = 0, None, None
    for event in seen.events:
        ids = set(event.leaves)
        if event.kind == "zero":
            used, added, cleared_other = used - ids, added - ids, event
        elif event.kind == "backward":
            added, taken = added | (used & ids & event.full), event
        elif event.kind == "step":
            times += bool(added & ids)
            used, added = used | ids, added - ids
            if times >= MANY - 1:
                wrong = cleared_other if cleared_other and cleared_other.optimizer is None else taken
                return Finding("not_cleared", wrong.place)
    return None


def _never_stepped(seen: LoopRecorder) -> Finding | None:
    """An optimiser whose tensors get gradients, time after time, and that never steps."""
    stepped = {id(event.optimizer) for event in seen.events if event.kind == "step"}
    for maker in seen.events:
        if maker.kind == "made" and id(maker.optimizer) not in stepped:
            filled = [e for e in seen.events if e.kind == "backward" and set(e.leaves) & set(maker.leaves)]
            if len(filled) >= MANY:
                return Finding("never_stepped", maker.place)
    return None


def _rebuilt(seen: LoopRecorder) -> Finding | None:
    """An optimiser with a memory is built anew for the same tensors in each outer step."""
    groups = defaultdict(list)
    for event in seen.events:
        if event.kind == "made" and event.place:
            groups[event.place[:2], tuple(event.leaves)].append(event)
    for events in groups.values():
        if len(events) >= MANY and any(event.optimizer.state for event in events):
            return Finding("rebuilt", events[0].place)
    return None


def _growing(seen: LoopRecorder) -> Finding | None:
    """The graph of the loss grows with every outer step; or, without any backward, with every step at all."""
    outer = [e for e in seen.events if e.kind == "backward"]
    inner = [e for e in seen.events if e.kind == "grad" and e.create_graph]
    whole = not outer and all(e.create_graph for e in seen.events if e.kind == "grad")
    for events in (outer, inner if whole else []):
        sizes = [event.size for event in events]
        steady = all(after > before for before, after in zip(sizes, sizes[1:], strict=False))
        if len(sizes) > MANY and steady and sizes[-1] > 2 * sizes[0]:
            return Finding("grows", _carrier(seen) or events[-1].place, f" (from {sizes[0]} to {sizes[-1]} nodes)")
    return None


def _carrier(seen: LoopRecorder):
    """The line that makes the weights which the last inner gradient is taken of."""
    for call in reversed(seen.calls):
        if call.name == "grad" and len(call.reads) > 1 and seen.values[call.reads[1]].producer is not None:
            return place(seen.calls[seen.values[call.reads[1]].producer])
    return None


def _kept_losses(seen: LoopRecorder) -> Finding | None:
    """Outer losses are kept as tensors, and keep their graphs."""
    taken = [e for e in seen.events if e.kind in ("backward", "grad") and not e.create_graph]
    alive = [event.alive for event in taken]
    if len(alive) <= MANY or alive != sorted(alive) or alive[-1] < len(alive) - 2:
        return None
    return Finding("kept_losses", _append_line(taken) or taken[-1].place)


def _append_line(events: list[Event]):
    for name in dict.fromkeys(frame.filename for event in events for frame in event.frames):
        for node in ast.walk(file_tree(name)):
            appends = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
            if appends and node.args and isinstance(node.args[0], ast.Name | ast.Attribute):
                return Frame(name, node.lineno)
    return None


def _cycle(seen: LoopRecorder) -> Finding | None:
    for event in seen.events:
        circles = event.kind == "backward" and event.create_graph
        leaves = [seen.tensors[leaf] for leaf in event.leaves] if circles else []
        if any(p.grad is not None and p.grad.requires_grad for p in leaves):
            return Finding("grad_cycle", event.place)
    return None


def _buffers(seen: LoopRecorder) -> Finding | None:
    """functional_call with parameters alone: the module's running statistics are written all the same."""
    for call in seen.calls:
        if not (call.wrote and call.frames and "functional_call" in call.frames[0].source):
            continue
        if "norm" in call.inner.rsplit("/", 1)[-1] and call.reads:
            makers = [seen.values[read].producer for read in call.reads]
            if not any(maker is not None and seen.calls[maker].name in ("clone", "clone_") for maker in makers):
                return Finding("buffers_written", call.frames[0])
    return None


def _same_rows(seen: LoopRecorder) -> Finding | None:
    """One line writes parts of one tensor that begin at the same place and differ in length."""
    parts = defaultdict(set)
    for call in seen.calls:
        if call.name == "__setitem__" and call.frames and isinstance(call.options.get("part"), tuple):
            parts[call.frames[0][:2], seen.values[call.reads[0]].tensor].add(call.options["part"])
    for (where, _), found in parts.items():
        starts = [start for start, _ in found]
        if len(starts) != len(set(starts)):
            return Finding("same_rows", Frame(*where))
    return None


def _piled(seen: LoopRecorder) -> Finding | None:
    """backward adds to the .grad of weights that no optimiser holds and nobody clears."""
    stepped = {p for e in seen.events if e.kind == "step" for p in e.leaves}
    times = defaultdict(int)
    for event in seen.events:
        for p in event.leaves:
            if event.kind == "zero":
                times.pop(p, None)
            elif event.kind == "backward":
                times[p] += p in event.full and p not in stepped
        if event.kind == "backward" and max(times.values(), default=0) >= MANY:
            return Finding("piled_up", event.place)
    return None
