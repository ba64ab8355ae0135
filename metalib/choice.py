"""Which exact mode suits a loop: what was measured, and how much memory its graphs would take."""

from contextlib import ExitStack

import torch
from torch import Tensor

from metalib.modes import Loop, Seen, begin, inner_step
from metalib.rates import Meta

LARGE = 20_000  # numbers in the weights from which on forward mode was measured to take as long as reverse mode
MUCH = 256 * 2**20  # bytes of graph that `auto` lets reverse mode keep
NODES = 36 * 2**10  # bytes that the nodes of one step's graph were measured to take on a network of two layers


def choose(loop: Loop, meta: Meta) -> tuple[str, str]:
    """An exact mode for this loop, and why: the fastest one that was measured; of two equally fast, the smaller one."""
    steps, size, numbers = len(loop.inner), _size(loop.weights), _size(meta)
    many = f"{numbers:,} number{'s' * (numbers > 1)} to differentiate for, {size:,} in the weights, K = {steps:,}"
    if steps > 1 and numbers == 1 and size >= LARGE:
        return "forward", f"{many}: one tangent costs less than the graphs of all steps"
    if steps >= 50 and (graphs := _graphs(loop, meta)):
        return "forward" if numbers <= 2 else "checkpointed", f"{many}: the graphs of all steps {graphs}"
    return "reverse", f"{many}: reverse mode is the fastest here"


def _graphs(loop: Loop, meta: Meta) -> str:
    """What to say of the graphs of all steps; "" where they are no trouble."""
    graphs = graph_bytes(loop, meta)
    if graphs is None:
        return "cannot be measured where saved-tensors hooks are disabled"
    graphs *= len(loop.inner)
    return f"would take about {graphs / 2**20:,.0f} MiB" if graphs > MUCH else ""


def _size(tensors: dict[str, Tensor]) -> int:
    return sum(t.numel() for t in tensors.values())


def graph_bytes(loop: Loop, meta: Meta) -> int | None:
    """What the graph of one inner step keeps alive, in bytes: the tensors that it saves, and its own nodes.

    None where saved-tensors hooks are disabled (torch.autograd.graph.disable_saved_tensors_hooks).
    """
    saved = {}

    def note(tensor: Tensor) -> Tensor:
        saved[tensor.data_ptr()] = tensor  # kept, or the next one could come to lie at the same address
        return tensor

    with ExitStack() as active:
        try:
            active.enter_context(torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor))
        except RuntimeError:  # with whatever message the one who disabled them gave
            return None
        inner_step(loop, meta, begin(loop)[0], Seen([], []), graph=True)
    return sum(tensor.nbytes for tensor in saved.values()) + NODES
