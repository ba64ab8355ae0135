"""When a loss or a gradient is nan or infinite: where it became so."""

import math

import torch

from metalib.culprit import Finding, place, readable
from metalib.recording import Call
from metalib.suspects import Study, bisect, claim, gradients, path, reaches


def explain_nan(study: Study) -> Finding:
    """The first value that is not finite, or whose gradient is not."""
    base = study.base
    way = path(base, base.last)
    bad = next((i for i in way if not math.isfinite(base.values[i].size)), None)
    if bad is None or base.values[bad].producer is None:
        connected = reaches(base, study.leaves, study.direction)
        worst = bisect(
            [i for i in way if i in connected], lambda part: _nan(lambda: claim(study, part, [1.0] * len(part)))
        )
        return _gradient(study, worst)
    call = base.calls[base.values[bad].producer]
    sizes = [base.values[i].size for i in way if i < bad and math.isfinite(base.values[i].size)]
    if max(sizes, default=0.0) > torch.finfo(base.values[bad].dtype).max ** 0.25:  # long before it overflows
        return Finding("explodes", _last_use(study, call), f" (up to {max(sizes):.0e} before they overflow)")
    if call.name in ("grad", "grad.__get__"):
        return _inside_gradient(study, call)
    return Finding("not_finite", place(call), readable(call.name))


def _gradient(study: Study, index: int | None) -> Finding:
    if index is None or study.base.values[index].producer is None:
        return Finding("unnamed", None)
    call = study.base.calls[study.base.values[index].producer]
    if call.name in ("grad", "grad.__get__"):
        return _inside_gradient(study, call)
    return Finding("nan_gradient", place(call), readable(call.name))


def _inside_gradient(study: Study, call: Call) -> Finding:
    """An inner gradient is nan though its loss is finite: the first value of that loss with such a gradient."""
    base, taken = study.base, study.base.taker(call)
    inputs = [base.values[read].edge for read in taken.reads[1:] if base.values[read].edge is not None]
    way = [i for i in path(base, taken.reads[0]) if base.values[i].edge is not None]

    def is_bad(part):
        return _nan(
            lambda: sum(g.sum().item() for g in gradients(study, part, [1.0] * len(part), inputs) if g is not None)
        )

    worst = bisect(way, is_bad) if inputs else None
    if worst is None or base.values[worst].producer is None:
        return Finding("nan_gradient", place(taken), "the inner gradient")
    made = base.calls[base.values[worst].producer]
    return Finding("nan_gradient", place(made), readable(made.name))


def _nan(number) -> bool:
    try:
        return not math.isfinite(number())
    except RuntimeError:  # a freed graph
        return False


def _last_use(study: Study, call: Call):
    """The line that used the meta-parameter last before `call`."""
    base = study.base
    before = base.calls[: base.calls.index(call) + 1]
    users = [c for c in before if c.frames and any(base.values[r].tensor in base.leaves for r in c.reads)]
    return place((users or [call])[-1])
