"""The doctor for a whole training loop: what a single step cannot show.

    from metalib import diagnose_loop
    print(diagnose_loop(train))         # train() runs a few outer steps

Its faults are of another kind: the meta-optimiser holds the wrong tensors, gradients are cleared at the wrong place or
not at all, a graph is carried from step to step.
"""

import ast

from metalib.causes import CAUSES
from metalib.culprit import Finding, place
from metalib.diagnosis import Diagnosis, explained
from metalib.failures import explain_error
from metalib.functions import graph_nodes
from metalib.keep import Keeper
from metalib.learned import dataflow
from metalib.loop_causes import LOOP_CAUSES
from metalib.loop_faults import find_fault
from metalib.places import raising_frames, run_step
from metalib.timeline import LoopRecorder


def diagnose_loop(run) -> Diagnosis:
    """Run `run()` once, watch it, and name the line that breaks the loop around the step.

    The verdict is "raises", "loop" (it runs, and something is wrong) or "right" (nothing was found). Three outer steps
    or more show most. What `run` changes outside itself is put back afterwards.

    >>> import torch
    >>> from metalib import diagnose_loop
    >>> def train():
    ...     rate = torch.tensor(0.1, requires_grad=True)
    ...     optimiser = torch.optim.SGD([rate], lr=0.1)
    ...     for _ in range(3):
    ...         (1 - rate).square().backward()
    ...         optimiser.step()
    >>> print(diagnose_loop(train).repair)
    Call the meta-optimiser's own zero_grad() in every outer step, before backward().
    """
    keep, recorder, error = Keeper(run), LoopRecorder(), None
    try:
        with recorder:
            try:
                run_step(lambda _: run(), None)
            except Exception as raised:
                error = raised
        finding = _explain(recorder, error, run, keep) if error is not None else find_fault(recorder)
    finally:
        keep.restore()
    if finding is None:
        return Diagnosis("right")
    said = explained(finding, CAUSES | LOOP_CAUSES, "what is learned")
    return Diagnosis("loop" if error is None else "raises", **said, error=error)


def _explain(seen: LoopRecorder, error: Exception, run, keep) -> Finding:
    raised, message = next(iter(raising_frames(error)), None), str(error)
    if "non-leaf" in message and "optimize" in message:
        return Finding("non_leaf", _maker_of_non_leaf(seen) or raised)
    if "backward through the graph a second time" in message or "modified by an inplace operation" in message:
        return _idle_detach(seen) or _carried(seen) or Finding("graph_carried", raised)
    return explain_error(dataflow(seen, None), error, lambda _: run(), keep)


def _maker_of_non_leaf(seen: LoopRecorder):
    last = [v for v in seen.values if v.edge is not None and v.edge.node.next_functions and v.producer is not None]
    return place(seen.calls[last[-1].producer]) if last else None


def _idle_detach(seen: LoopRecorder) -> Finding | None:
    """`h.detach()` as a statement: its result goes nowhere."""
    read = {index for call in seen.calls for index in call.reads}
    for call in seen.calls:
        if call.name == "detach" and call.frames and not set(call.writes) & read:
            try:
                statement = ast.parse(call.frames[0].source).body[0]
            except (SyntaxError, IndexError):
                continue
            if isinstance(statement, ast.Expr):
                return Finding("idle_detach", call.frames[0])
    return None


def _carried(seen: LoopRecorder) -> Finding | None:
    """The newest tensor of a graph that one backward has gone through and that the next one meets again."""
    takers = [
        (at, c)
        for at, c in enumerate(seen.calls)
        if c.name in ("backward", "grad") and not c.options.get("create_graph")
    ]
    if len(takers) < 2:
        return None
    last, before = takers[-1], takers[:-1]
    needed = set(graph_nodes([seen.values[r].edge for r in last[1].reads[:1]]))
    for at, call in reversed(before):
        freed = {n for n in graph_nodes([seen.values[r].edge for r in call.reads[:1]]) if n.next_functions} & needed
        read_later = {index for later in seen.calls[at + 1 :] for index in later.reads}
        met = [i for i in read_later if seen.values[i].edge is not None and seen.values[i].edge.node in freed]
        made = [seen.values[i].producer for i in met if seen.values[i].producer is not None]
        made = [producer for producer in made if seen.calls[producer].frames]
        if made:
            return Finding("graph_carried", seen.calls[max(made)].frames[0])
    return None
