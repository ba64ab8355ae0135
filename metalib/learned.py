"""Does the optimiser of a training loop hold what is to be learned?"""

from metalib.culprit import Finding, explain_break
from metalib.recording import Recording
from metalib.suspects import Study, first_cut
from metalib.timeline import LoopRecorder


def _made_by(seen: LoopRecorder, tensor: int) -> tuple[int, object] | None:
    """(call number, line) that made this tensor."""
    for value in seen.values:
        if value.tensor == tensor and value.producer is not None and seen.calls[value.producer].frames:
            return value.producer, seen.calls[value.producer].frames[0]
    return None


def wrong_tensors(seen: LoopRecorder) -> Finding | None:
    """A tensor in the role of a rate gets a gradient, and no optimiser steps it."""
    makers = [e for e in seen.events if e.kind == "made"]
    stepped = {p for e in seen.events if e.kind == "step" for p in e.leaves}
    if not stepped:
        return None
    reached = {p for e in seen.events if e.kind == "backward" for p in e.leaves}
    weights = {seen.values[read].tensor for call in seen.calls if call.name == "grad" for read in call.reads[1:]}
    # Weights that are made anew in each step: those of the last one are not differentiated any more.
    lines = {made[1] for weight in weights if (made := _made_by(seen, weight))}
    weights |= {leaf for leaf in reached if (made := _made_by(seen, leaf)) and made[1] in lines}
    idle = [p for p in stepped - reached if seen.tensors[p].grad is None]
    for leaf in sorted(reached - stepped):
        alike = [p for p in idle if seen.tensors[p].shape == seen.tensors[leaf].shape]
        if not alike and (leaf in weights or not _is_rate(seen, leaf)):
            continue
        made, copied = _made_by(seen, leaf), _made_by(seen, alike[0]) if alike else None
        if made and made[0] >= makers[0].at and leaf not in weights:
            return Finding("replaced", made[1])
        if copied and seen.calls[copied[0]].name in ("clone", "detach", "requires_grad_", "Parameter", "__deepcopy__"):
            return Finding("holds_copies", copied[1])
        if leaf not in weights:
            return Finding("not_held", makers[-1].place)
    return None


def never_reached(seen: LoopRecorder) -> Finding | None:
    """No backward reaches what the optimiser steps: the gradient stops inside the step, at the line that is named."""
    steps = [e for e in seen.events if e.kind == "step"]
    outer = [e for e in seen.events if e.kind == "backward"]
    held = {leaf for event in steps for leaf in event.leaves}
    if len(steps) < 2 or not outer or held & {leaf for event in outer for leaf in event.leaves}:
        return None
    study = dataflow(seen, [call for call in seen.calls if call.name == "backward"][-1].reads[0])
    cut = first_cut(study)
    return Finding("never_reached", outer[-1].place) if cut is None else explain_break(study, cut)


def dataflow(seen: LoopRecorder, last: int | None) -> Study:
    """A study without differences: what was computed from something that an optimiser steps counts as moving."""
    held = {leaf for event in seen.events if event.kind in ("made", "step") for leaf in event.leaves}
    leaves = {str(leaf): seen.tensors[leaf] for leaf in held}
    depends: list[float] = []
    for value in seen.values:
        reads = [] if value.producer is None else seen.calls[value.producer].reads
        depends.append(float(value.tensor in held or any(depends[read] for read in reads if read < len(depends))))
    base = Recording(seen.calls, seen.values, None, last, None, held)
    return Study(base, leaves, leaves, depends, [0.0] * len(depends), 0.0)


def _is_rate(seen: LoopRecorder, leaf: int) -> bool:
    """Is the leaf, or something computed from it alone, combined with an inner gradient?"""
    own = {i for i, v in enumerate(seen.values) if v.tensor == leaf}
    slopes = {w for c in seen.calls if c.name in ("grad", "grad.__get__") for w in c.writes}
    for call in seen.calls:
        reads = set(call.reads)
        if not reads & own or call.name in ("grad", "grad.__get__", "backward", "detach", "data.__get__"):
            continue
        if reads & slopes:
            return True
        if all(i in own or not seen.values[i].wants_grad for i in reads):
            own |= set(call.writes)
    return False
