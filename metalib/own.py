"""A module of your own as a problem, so that everything here runs on it: meta_gradient(FromModule(net, …), 0.1, 5)."""

import copy
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from metalib.problems import Batch, Task, Weights
from metalib.randomness import drawing
from metalib.trial import first_loss, refuse, try_out
from metalib.unroll import fresh_leaves

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
NORMS += (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


class FromModule:
    """Fit `module` to your batches: the loss is criterion(module(x), y), the weights start as they are in the module.

    inner    one batch for each inner step, walked through again from the first when there are more steps
    outer    the batch of the outer loss

    The module itself is never changed; what it is at the time of this call counts, but for the values of the weights,
    which are read when a loop begins. Frozen parameters (`requires_grad` is False) keep their values, tied ones stay
    tied. `module.train()` or `module.eval()`, called before, decides as always: BatchNorm in training mode uses the
    statistics of its batch (its running statistics are not kept), dropout draws (give meta_gradient a generator). An
    `x` that is a tuple holds several inputs. A `torch.autograd.Function` of your own must be right when it is
    differentiated twice: it is held against differences once, in float64. Where the module cannot compute in float64,
    nothing can be measured, and only once_differentiable is seen.

    Raises ValueError for a module whose meta-gradient would be wrong: here, or when meta_gradient first tries it out
    (see `trial.py`).

    Calling a module with other weights is what `torch.func.functional_call` does. It looks up every name at each call,
    which takes longer than a small network itself. Here all places of a weight are looked up once, in a copy, and each
    call writes to them.

    >>> import torch
    >>> from metalib import FromModule, meta_gradient
    >>> net, x = torch.nn.Linear(1, 1), torch.ones(8, 1)
    >>> batch = x, net(x).detach() + 3
    >>> problem = FromModule(net, torch.nn.functional.mse_loss, inner=[batch], outer=batch)
    >>> print(f"{meta_gradient(problem, 0.1, inner_steps=2).gradient['rate']:.2f}")
    -31.10
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
        refuse(module)
        self.module, self.criterion, self.name = module, criterion, name
        self.inner, self.outer = [Batch(*batch) for batch in inner], Batch(*outer)
        for which, batch in (*(("an inner batch", each) for each in self.inner), ("the outer batch", self.outer)):
            for part in (*(batch.x if isinstance(batch.x, tuple) else (batch.x,)), batch.y):
                if isinstance(part, Tensor) and not part.numel():
                    raise ValueError(f"{which} is empty, of shape {tuple(part.shape)}: give at least one sample")
        self.learned = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not self.learned:
            raise ValueError("no parameter of the module requires grad: there is nothing for an inner step to change")
        self._lock, self._tried = threading.RLock(), False
        self._copy = _copied(module, self.learned)
        names = {id(p): name for name, p in self.learned.items()}
        self._places = [
            (layer, attribute, names[id(p)])
            for layer in self._copy.modules()
            for attribute, p in layer.named_parameters(recurse=False, remove_duplicate=False)
            if id(p) in names
        ]
        self._put(dict.fromkeys(self.learned))
        self._probe = _probe() if any(map(parametrize.is_parametrized, self._copy.modules())) else None

    def __reduce__(self):
        """A copy of this problem is made anew, from a copy of its module."""
        return type(self), (self.module, self.criterion, self.inner, self.outer, self.name)

    def initial_weights(self, generator: torch.Generator | None = None) -> Weights:
        return {name: p.detach().clone() for name, p in self.learned.items()}

    def sample(self, inner_steps: int, generator: torch.Generator | None = None) -> Task:
        return Task([self.inner[step % len(self.inner)] for step in range(inner_steps)], self.outer)

    def check(self, weights: Weights, batch: Batch) -> None:
        """ValueError for weights that are not the module's, and, at the first call, for what `try_out` finds."""
        for name in self.learned.keys() | weights.keys():
            shapes = [tuple(side[name].shape) if name in side else "none" for side in (weights, self.learned)]
            if shapes[0] != shapes[1]:
                raise ValueError(f"weights[{name!r}] has the shape {shapes[0]}: the module's has {shapes[1]}")
        if self._probe is not None and self._probe.weight is self._probe.weight:
            raise ValueError(
                "inside torch.nn.utils.parametrize.cached() the module would compute every inner step with the weights "
                "of the first: call meta_gradient outside of it"
            )
        if not self._tried:
            certain = try_out(self.loss, weights, batch, self._copy, self.learned, self._double)
            with torch.enable_grad(), drawing(0, weights):
                first_loss(self.loss, fresh_leaves(weights), self.outer, "the outer batch")
            self._tried = certain

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        with self._lock:  # two threads would write their weights into one copy
            self._put(weights)
            try:
                inputs = batch.x if isinstance(batch.x, tuple) else (batch.x,)
                return self.criterion(self._copy(*inputs), batch.y)
            finally:
                self._put(dict.fromkeys(weights))  # or the copy would keep a whole unroll's graph alive

    def _double(self) -> Callable[[Weights, Batch], Tensor]:
        """The loss in float64, for weights and batches of float64."""
        return FromModule(copy.deepcopy(self.module).double(), self.criterion, self.inner, self.outer).loss

    def _put(self, weights: Weights) -> None:
        """Write into the layers' own dicts: as parameters, for whoever lists these, and as attributes, found faster."""
        for layer, attribute, name in self._places:
            own, weight = vars(layer), weights[name]
            if isinstance(
                layer, nn.RNNBase
            ):  # keeps a second list of its weights, which only setattr brings up to date
                own["_parameters"].pop(attribute, None)
                setattr(layer, attribute, weight)
            own[attribute] = own["_parameters"][attribute] = weight

    def best_rate(self, inner_steps: int) -> None:
        return None


class _Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def _probe() -> nn.Module:
    """A layer whose weight is a new tensor each time that it is read, unless parametrize.cached() is on."""
    layer = nn.Linear(1, 1, bias=False)
    parametrize.register_parametrization(layer, "weight", _Doubled(), unsafe=True)
    return layer


def _copied(module: nn.Module, learned: Weights) -> nn.Module:
    """The module with buffers and frozen parameters of its own, and the same learned ones."""
    try:
        copied = copy.deepcopy(module, memo={id(p): p for p in learned.values()})
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"the module cannot be copied: {error}") from error
    for layer in copied.modules():
        if isinstance(layer, NORMS) and layer.training:  # they change nothing that it computes
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    return copied


class Bare(NamedTuple):
    """A loss function in a problem's place."""

    loss: Callable[[Weights, Batch], Tensor]


def as_problem(problem, weights: Weights | None, task):
    """`problem` itself, or a bare loss function as one. ValueError for anything else."""
    if all(hasattr(problem, part) for part in ("initial_weights", "sample", "loss")):
        return problem
    if callable(problem) and not isinstance(problem, (nn.Module, type)):
        for what, given in {"weights={name: tensor}": weights, "task=Task(inner batches, outer batch)": task}.items():
            if given is None:
                raise ValueError(f"problem is a function, which does not say where to start or on what: give {what}")
        return Bare(problem)
    hint = "FromModule(your module, criterion, inner, outer)" if isinstance(problem, nn.Module) else "PROBLEMS[…]"
    raise ValueError(
        f"problem is {problem!r}: give {hint}, an object with initial_weights, sample and loss, or a loss function"
    )
