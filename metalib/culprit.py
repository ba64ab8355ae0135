"""From the first broken value to a cause: which call made it, on which of the user's lines, and what kind of fault."""

import os
import re
from typing import NamedTuple

from metalib.functions import custom_function, function_line, graph_nodes
from metalib.places import Frame
from metalib.recording import NUMBERS, Call, Recording
from metalib.suspects import Study, moves

MAKERS = {
    "tensor",
    "as_tensor",
    "from_numpy",
    "new_tensor",
    "full",
    "full_like",
    "new_full",
    "scalar_tensor",
    "asarray",
}
DETACHERS = {"data.__get__": "data_read", "detach": "detach", "detach_": "detach"}


class Finding(NamedTuple):
    cause: str
    frame: Frame | None
    detail: str = ""


def explain_break(study: Study, index: int) -> Finding:
    """The cause behind the value at `index`, the first whose change autograd does not know."""
    base, value = study.base, study.base.values[index]
    switched = _last_switch(base, value.tensor)
    if switched and switched.off and not value.wants_grad:
        return Finding("frozen", switched.frames[0])
    hooked = next((c for c in base.calls if c.name == "register_hook" and _reads(base, c, value.tensor)), None)
    if hooked and value.wants_grad:
        return Finding("hook", hooked.frames[0])
    call = None if value.producer is None else base.calls[value.producer]
    if call is None or _made_out_of_sight(base, index, call):
        return _outside(study, next(at for at, reader in enumerate(base.calls) if index in reader.reads))
    if value.edge is not None and (function := custom_function(value.edge.node)):
        return Finding("custom_backward", function_line(function) or place(call), f"the Function {function.__name__}")
    if value.edge is not None and any("checkpoint(" in frame.source for frame in call.frames):
        return Finding("recomputed", next(frame for frame in call.frames if "checkpoint(" in frame.source))
    return _by_name(study, index, call)


def _made_out_of_sight(base: Recording, index: int, call: Call) -> bool:
    """Is it another tensor than those that `call` returned, with the content that `call` made?"""
    value, made = base.values[index], {base.values[written].tensor for written in call.writes}
    leaf = value.edge is None or not value.edge.node.next_functions
    return leaf and not call.wrote and value.tensor not in made


def _by_name(study: Study, index: int, call: Call) -> Finding:
    base, name, inner = study.base, call.name, call.inner.replace(os.sep, "/")
    if name == "data.__set__":
        return Finding("data_write", place(call))
    if name in DETACHERS and call.grad:
        return _detached(base, index, call)
    if name == "Parameter":
        return Finding("parameter_rewrap", place(call))
    if name == "__deepcopy__":
        return Finding("copied", place(call), "copy.deepcopy")
    if name in ("grad.__get__", "grad"):
        return _inner_gradient(base, call)
    if name == "compiled":
        return Finding("compiled", place(call))
    if "/torch/optim/" in inner:
        dropped = call.grad and base.values[call.reads[0]].producer is not None
        cause = "optimizer_drops_rate" if dropped else "optimizer_step"
        return Finding(cause, place(call), f" (torch.optim, {os.path.basename(inner)})")
    if call.inference or not call.grad:
        return switched_off(call)
    if call.wrote and call.reads and (through := _written_through(base, call)):
        return Finding("data_write" if through == "data.__get__" else "detached_write", place(call))
    return _from_numbers(study, call) or Finding("wrong_formula", place(call), readable(name))


def place(call: Call) -> Frame | None:
    return call.frames[0] if call.frames else None


def readable(name: str) -> str:
    known = {"grad": "autograd.grad", "__getitem__": "indexing", "__pow__": "**", "grad.__get__": ".grad"}
    return known.get(name, name.replace(".__get__", "").strip("_"))


def _reads(base: Recording, call: Call, tensor: int) -> bool:
    return any(base.values[read].tensor == tensor for read in call.reads)


def _last_switch(base: Recording, tensor: int) -> Call | None:
    """The last call that set requires_grad of this tensor."""
    switches = ("requires_grad_", "requires_grad.__set__")
    found = [c for c in base.calls if c.name in switches and c.frames and base.values[c.reads[0]].tensor == tensor]
    return found[-1] if found else None


def _written_through(base: Recording, call: Call) -> str | None:
    """The name of the call that made the tensor without a history which `call` writes to."""
    target = base.values[call.reads[0]]
    maker = base.calls[target.producer].name if target.producer is not None else None
    if maker in DETACHERS and not target.wants_grad:
        return maker
    made = [
        c.name for c in base.calls if c.name in DETACHERS and target.tensor in {base.values[w].tensor for w in c.writes}
    ]
    return made[-1] if made and not target.wants_grad else None


def _detached(base: Recording, index: int, call: Call) -> Finding:
    value = base.values[index]
    for later in base.calls[value.producer + 1 :]:
        if value.address in later.wrote and later.reads and base.values[later.reads[0]].tensor == value.tensor:
            return Finding("data_write" if call.name == "data.__get__" else "detached_write", place(later))
    same_line = [c.name for c in base.calls[value.producer :] if c.frames[:1] == call.frames[:1]]
    if call.name == "data.__get__" and "data.__set__" in same_line:
        return Finding("data_write", place(call))
    return Finding("parameter_rewrap" if "Parameter" in same_line else DETACHERS[call.name], place(call))


def _inner_gradient(base: Recording, call: Call) -> Finding:
    taken = base.taker(call)
    if not taken.options.get("create_graph"):
        said = [frame for frame in taken.frames[1:] if "create_graph" in frame.source]  # the caller chose it
        return Finding("create_graph", said[-1] if said else place(taken))
    for node in graph_nodes([base.values[read].edge for read in taken.reads]):
        if node.name().startswith("CompiledFunction"):
            return Finding("compiled", compile_line(base) or place(taken))
        if function := custom_function(node):
            return Finding("no_double_backward", function_line(function) or place(taken), f"of {function.__name__}")
    return Finding("wrong_formula", place(taken), "autograd.grad")


def compile_line(base: Recording) -> Frame | None:
    return next((call.frames[0] for call in base.calls if call.name == "compiled" and call.frames), None)


def switched_off(call: Call) -> Finding:
    """Gradients were off: point into the region that switched them off, not into a helper called from there."""
    cause = "inference_mode" if call.inference else "no_grad"
    if call.inner.replace(os.sep, "/").endswith("torch/nn/modules/module.py"):
        return Finding("load_state_dict", place(call))
    for frame in call.frames:  # a decorated function: the decorator is the line to change
        first = source(frame, frame.first)
        if re.match(r"@(\w+\.)*(no_grad|inference_mode|set_grad_enabled)\b", first):
            return Finding(cause, Frame(frame.filename, frame.first, frame.function), " by this decorator")
    region = call.region
    if call.inference or region is None:
        return Finding(cause, place(call))
    if "checkpoint(" in region.source:
        return Finding("checkpoint", region)
    if "set_grad_enabled" in region.source and not region.source.startswith(("with ", "@")):
        return Finding(cause, region, " by this line")
    depth = next((at for at, frame in enumerate(call.frames) if frame.key == region.key), 0)
    return Finding(cause, call.frames[depth], f" (since line {region.lineno})")


def source(frame: Frame, lineno: int) -> str:
    return Frame(frame.filename, lineno).source


def _from_numbers(study: Study, call: Call) -> Finding | None:
    """The call computed with a plain number that had been a tensor: the line where it left PyTorch."""
    base = study.base
    left = [c for c in base.calls[: base.calls.index(call)] if c.name in NUMBERS and _took(study, c)]
    used = [c for c in left if isinstance(c.result, float | int) and float(c.result) in call.numbers]
    if left:
        taken = (used or left)[-1]
        return Finding("left_torch", taken.frames[0], f".{readable(taken.name)}")
    return Finding("copied", place(call), f"torch.{call.name}") if call.name in MAKERS else None


def _took(study: Study, call: Call) -> bool:
    return bool(call.frames) and any(moves(study, read) for read in call.reads)


def _outside(study: Study, at: int) -> Finding:
    """A value that no recorded call has made, such as torch.from_numpy's or torch.func.grad's: the last cut before."""
    for call in reversed(study.base.calls[:at]):
        if not _took(study, call):
            continue
        if call.name in NUMBERS:
            return Finding("left_torch", call.frames[0], f".{readable(call.name)}")
        if call.name in DETACHERS:
            return Finding(DETACHERS[call.name], call.frames[0])
        if not call.grad or call.inference:
            return switched_off(call)
    return Finding("left_torch", place(study.base.calls[at]), "outside of PyTorch")
