"""The data of a problem: batches, and the task that one outer step sees."""

from typing import NamedTuple

from torch import Tensor

Weights = dict[str, Tensor]


class Batch(NamedTuple):
    """Inputs `x` and targets `y`, one row (or one number) a sample."""

    x: Tensor
    y: Tensor


class Task(NamedTuple):
    """What one outer step sees: a batch for each inner step and the batch of the outer loss."""

    inner: list[Batch]
    outer: Batch


def place(tree, device, dtype):
    """The same tensors on `device`; floating ones in `dtype`, integer ones (labels) as they are."""
    if isinstance(tree, Tensor):
        return (tree.to(dtype) if tree.is_floating_point() else tree).to(device)  # MPS has no float64: cast first
    if isinstance(tree, dict):
        return {name: place(leaf, device, dtype) for name, leaf in tree.items()}
    if isinstance(tree, Batch):
        return Batch(*(place(leaf, device, dtype) for leaf in tree))
    batches = {id(batch): batch for batch in [*tree.inner, tree.outer]}  # a task may repeat one
    placed = {key: place(batch, device, dtype) for key, batch in batches.items()}
    return Task([placed[id(batch)] for batch in tree.inner], placed[id(tree.outer)])
