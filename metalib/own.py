"""A module of your own as a problem, so that everything here runs on it: meta_gradient(FromModule(net, …), 0.1, 5)."""

import copy
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from metalib.problems import Batch, Task, Weights

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
NORMS += (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


class FromModule:
    """Fit `module` to your batches: the loss is criterion(module(x), y), the weights start as they are in the module.

    inner    one batch for each inner step, walked through again from the first when there are more steps
    outer    the batch of the outer loss

    The module itself is never changed. Frozen parameters (`requires_grad` is False) keep their values, tied ones stay
    tied. `module.train()` or `module.eval()`, called before, decides as always: BatchNorm in training mode uses the
    statistics of its batch (its running statistics are not kept), dropout draws (give meta_gradient a generator). An
    `x` that is a tuple holds several inputs. Raises ValueError for a module that cannot be differentiated rightly: one
    that changes other buffers while it computes, or has weight_norm, whose second derivative is wrong in PyTorch.

    Calling a module with other weights is what `torch.func.functional_call` does. It looks up every name at each call,
    which takes longer than a small network itself. Here the parameters are deleted from a copy once, and each call
    sets plain attributes of the same names.
    """

    def __init__(
        self,
        module: nn.Module,
        criterion: Callable[[Tensor, Tensor], Tensor],
        inner: Sequence[Batch],
        outer: Batch,
        name: str = "your module",
    ):
        if not inner:
            raise ValueError("inner is empty: give at least one batch for the inner steps")
        self.name, self.criterion = name, criterion
        self.inner, self.outer = [Batch(*batch) for batch in inner], Batch(*outer)
        self.learned = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not self.learned:
            raise ValueError("no parameter of the module requires grad: there is nothing for an inner step to change")
        self._copy, self._tested = _copied(module), False
        names = {id(p): name for name, p in self.learned.items()}
        self._places = [
            (_setter(layer, attribute), names[id(p)])
            for layer in self._copy.modules()
            for attribute, p in [*layer.named_parameters(recurse=False, remove_duplicate=False)]
            if id(p) in names
        ]

    def initial_weights(self, generator: torch.Generator | None = None) -> Weights:
        return {name: p.detach().clone() for name, p in self.learned.items()}

    def sample(self, inner_steps: int, generator: torch.Generator | None = None) -> Task:
        return Task([self.inner[step % len(self.inner)] for step in range(inner_steps)], self.outer)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        if not self._tested:
            self._test(weights, batch)
        for put, name in self._places:
            put(weights[name])
        try:
            inputs = batch.x if isinstance(batch.x, tuple) else (batch.x,)
            return self.criterion(self._copy(*inputs), batch.y)
        finally:
            for put, _ in self._places:  # or the copy would keep a whole unroll's graph alive
                put(None)

    def _test(self, weights: Weights, batch: Batch) -> None:
        """Refuse a module that computes something else at the next call."""
        self._tested = True
        before = {name: buffer.clone() for name, buffer in self._copy.named_buffers()}
        if before:
            with torch.random.fork_rng({w.device for w in weights.values() if w.device.type == "cuda"}):
                self.loss(weights, batch)
        for name, buffer in self._copy.named_buffers():
            if not torch.equal(buffer, before[name]):
                raise ValueError(
                    f"the module writes its buffer {name!r} while it computes, so it is another function at each call: "
                    "call module.eval() before, or take that layer out"
                )

    def best_rate(self, inner_steps: int) -> None:
        return None


def _copied(module: nn.Module) -> nn.Module:
    """The module with buffers of its own and the same parameters."""
    for layer in module.modules():
        if type(layer).__name__ in ("_WeightNorm", "WeightNorm"):
            raise ValueError(
                "the module has weight_norm, whose second derivative is wrong in PyTorch: take it out with "
                "torch.nn.utils.parametrize.remove_parametrizations, or compute g * v / v.norm() in a layer of your own"
            )
    try:
        copied = copy.deepcopy(module, memo={id(p): p for p in module.parameters()})
    except RuntimeError as error:
        raise ValueError(f"the module cannot be copied, since it keeps tensors that have a history: {error}") from error
    for layer in copied.modules():
        if isinstance(layer, NORMS) and layer.training:  # they change nothing that it computes
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    return copied


def _setter(layer: nn.Module, attribute: str) -> Callable[[Tensor | None], None]:
    """Delete a parameter; what puts a tensor in its place."""
    delattr(layer, attribute)
    if type(layer).__setattr__ is nn.Module.__setattr__:
        return partial(vars(layer).__setitem__, attribute)  # the same, without looking for a parameter of that name
    return partial(setattr, layer, attribute)  # an RNN keeps a second list of its weights
