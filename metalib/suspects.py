"""Where the gradient parts from the value: the first content whose true change autograd does not know.

Each recorded value has a true derivative (two recordings, at neighbouring meta-parameters) and a claimed one (autograd,
from the value's place in the graph). As long as both agree, nothing is broken yet. The first value on the way to the
outer loss where they part was made by the guilty call.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from metalib.recording import Recording, Value, numbers_for
from metalib.referee import alike, fresh
from metalib.trace import record

PRECISION = {torch.float64: (1e-6, 1e-3), torch.float32: (3e-3, 5e-2)}  # dtype -> (relative step, tolerance)


class Study(NamedTuple):
    """A recording, and how each of its values truly changes along `direction`: nan where that cannot be told."""

    base: Recording
    leaves: dict[str, Tensor]
    direction: dict[str, Tensor]
    slopes: list[float]
    noise: list[float]  # what rounding alone can make of a slope
    tolerance: float  # relative: beyond it, a claim and a slope are two different numbers

    def again(self) -> dict[str, Tensor]:
        """The same meta-parameters in fresh leaves, for one more run."""
        return fresh(self.leaves)


def study(step, meta: dict[str, Tensor], names: list[str], keep) -> Study:
    """Three recordings: at `meta`, and a little to either side of it in the parameters called `names`."""
    generator = torch.Generator().manual_seed(7)
    dtype = torch.float32 if any(p.dtype == torch.float32 for p in meta.values()) else torch.float64
    small, tolerance = PRECISION[dtype]
    direction = {}
    for name in names:
        p = meta[name].detach()
        factors = 0.5 + torch.rand(p.shape, dtype=p.dtype, generator=generator).to(p.device)
        direction[name] = p.abs().clamp(min=0.01) * (1.0 if p.numel() == 1 else factors)
    sides = []
    for sign in (1, -1, 0):  # the recording whose graph is asked later comes last: what follows may change its tensors
        moved = {name: p.detach() + sign * small * direction.get(name, 0) for name, p in meta.items()}
        leaves = fresh({name: alike(meta[name], p) for name, p in moved.items()})
        sides.append(keep.run(record, step, leaves))
    up, down, base = sides
    slopes, noise = _slopes(base.values, up.values, down.values, small, torch.finfo(dtype).eps)
    return Study(base, leaves, direction, slopes, noise, tolerance)


def _slopes(base: list[Value], up: list[Value], down: list[Value], small: float, eps: float):
    slopes, noise = [], []
    aligned = True
    for index, value in enumerate(base):
        aligned = aligned and index < min(len(up), len(down)) and up[index].shape == value.shape
        if not aligned:
            slopes.append(math.nan)
            noise.append(math.inf)
            continue
        slopes.append((up[index].number - down[index].number) / (2 * small))
        noise.append(64 * eps * value.size / small)
    return slopes, noise


def moves(study: Study, index: int) -> bool:
    return abs(study.slopes[index]) > study.noise[index]


def path(recording: Recording, last: int | None) -> list[int]:
    """The positions of all values that the value `last` was computed from, in the order of their creation."""
    seen, todo = set(), [last]
    while todo:
        index = todo.pop()
        if index is None or index in seen:
            continue
        seen.add(index)
        producer = recording.values[index].producer
        if producer is None:
            continue
        call = recording.calls[producer]
        todo += call.reads
        todo += recording.taker(call).reads
    return sorted(seen)


def reaches(recording: Recording, leaves: dict[str, Tensor], names) -> set[int]:
    """The positions of the values from which autograd has a way to one of the leaves called `names`."""
    goals = {torch.autograd.graph.get_gradient_edge(leaves[name]).node for name in names}
    known: dict = {None: False, **dict.fromkeys(goals, True)}
    found = set()
    for index, value in enumerate(recording.values):
        if value.edge is None:
            continue
        stack = [value.edge.node]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            children = [child for child, _ in node.next_functions]
            open_ones = [child for child in children if child not in known]
            if open_ones:
                stack += open_ones
            else:
                known[node] = any(known[child] for child in children)
                stack.pop()
        if known[value.edge.node]:
            found.add(index)
    return found


def claim(study: Study, indices: list[int], scales: list[float]) -> float:
    """What autograd says of the sum of these values' projections, each times its scale, along the direction."""
    grads = gradients(study, indices, scales, [study.leaves[name] for name in study.direction])
    pairs = zip(grads, study.direction.values(), strict=True)
    return sum((grad.detach() * towards).sum().item() for grad, towards in pairs if grad is not None)


def gradients(study: Study, indices: list[int], scales: list[float], targets) -> list:
    """Autograd's gradients of that sum with respect to `targets`, tensors or places in the graph."""
    values = [study.base.values[index] for index in indices]
    upstream = [
        (scale * numbers_for(math.prod(value.shape)).reshape(value.shape)).to(value.device, value.dtype)
        for value, scale in zip(values, scales, strict=True)
    ]
    edges = [value.edge for value in values]
    return torch.autograd.grad(edges, targets, upstream, retain_graph=True, allow_unused=True)


def first_break(study: Study) -> int | None:
    """The position of the first value on the way to the loss whose change autograd does not know, or None."""
    on_path, connected = _on_the_way(study)
    cut = next((i for i in on_path if i not in connected), None)
    before = [i for i in on_path if i in connected and (cut is None or i < cut)]
    wrong = bisect(before, lambda part: _is_wrong(study, part))
    return cut if wrong is None else wrong


def first_cut(study: Study) -> int | None:
    """The position of the first value on the way from which autograd has no way back at all."""
    on_path, connected = _on_the_way(study)
    return next((i for i in on_path if i not in connected), None)


def _on_the_way(study: Study) -> tuple[list[int], set[int]]:
    """(the values that move, on the way to the loss; the values that autograd connects with the meta-parameters)."""
    on_path = [i for i in path(study.base, study.base.last) if moves(study, i) and not _inside_function(study.base, i)]
    return on_path, reaches(study.base, study.leaves, study.direction)


def _inside_function(base: Recording, index: int) -> bool:
    """Is it a value inside the forward of a torch.autograd.Function, where no graph is to be expected?"""
    value = base.values[index]
    return value.edge is None and value.producer is not None and base.calls[value.producer].opaque


def bisect(indices: list[int], is_bad) -> int | None:
    """The first bad index, where `is_bad` tells of a whole list whether one of it is bad."""
    if not indices or not is_bad(indices):
        return None
    low, high = 0, len(indices)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_bad(indices[low:middle]) else (middle, high)
    return indices[low]


def _is_wrong(study: Study, indices: list[int]) -> bool:
    scales = [1 / study.slopes[index] for index in indices]
    try:
        claimed = claim(study, indices, scales)
    except RuntimeError:  # a graph on the way is freed or overwritten
        if len(indices) == 1:
            return False
        middle = len(indices) // 2
        return _is_wrong(study, indices[:middle]) or _is_wrong(study, indices[middle:])
    return not abs(claimed - len(indices)) <= study.tolerance * max(1, len(indices) ** 0.5)
