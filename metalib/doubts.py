"""A right gradient of a doubtful program: two things that finite differences cannot object to."""

from metalib.culprit import Finding
from metalib.functions import reachable
from metalib.recording import Recording


def second_thoughts(base: Recording) -> Finding | None:
    """For a step whose gradient is right: reentrant checkpointing, or an inner gradient that sees an update."""
    return checkpoint_line(base) or _sees_update(base)


def checkpoint_line(base: Recording) -> Finding | None:
    for value in base.values:
        if value.edge is None or value.edge.node.name() != "CheckpointFunctionBackward" or value.producer is None:
            continue
        frames = base.calls[value.producer].frames
        named = [frame for frame in frames if "checkpoint" in frame.source]
        if frames:
            return Finding("checkpoint", (named or frames)[0])
    return None


def _sees_update(base: Recording) -> Finding | None:
    """Layer by layer: the loss of a later inner gradient holds the update that came of an earlier one."""
    takers = [call for call in base.calls if call.name == "grad" and call.writes]
    metas = {v.edge.node for v in base.values if v.tensor in base.leaves and v.edge is not None}
    for at, later in enumerate(takers):
        loss, inputs = _nodes(base, later.reads[:1]), _nodes(base, later.reads[1:])
        between = set(reachable(loss, stop=inputs))
        for earlier in takers[:at]:
            gradients, before = _nodes(base, earlier.writes), _nodes(base, earlier.reads[1:])
            if inputs & before or not gradients & between:
                continue
            updated = any(_is_update(node, gradients, before, metas) for node in between - gradients)
            if updated and reachable(gradients).keys() & inputs:
                return Finding("sees_update", later.frames[0] if later.frames else None)
    return None


def _is_update(node, gradients, before, metas) -> bool:
    """Does this node combine weights with their gradient and a meta-parameter, as w - rate * g does?"""
    if node.name() not in ("SubBackward0", "AddBackward0"):
        return False
    children = {child for child, _ in node.next_functions if child is not None}
    if not children & before:
        return False
    others = reachable(children - before, stop=before).keys()
    return bool(others & gradients) and bool(others & metas)


def _nodes(base: Recording, indices) -> set:
    return {base.values[i].edge.node for i in indices if base.values[i].edge is not None}
