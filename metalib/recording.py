"""The parts of a recording: the calls of a step and the values they read and wrote, each reduced to a few numbers."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import get_gradient_edge
from torch.overrides import resolve_name

from metalib.places import Frame

NUMBERS = {"item", "__float__", "tolist", "numpy", "__int__", "__array__"}  # what takes a value out of PyTorch
SWITCHES = {"_set_grad_enabled", "backward", "register_hook", "requires_grad_", "requires_grad.__set__"}


@cache
def weights(count: int) -> Tensor:
    """Fixed numbers without a pattern, the first `count` of one endless sequence."""
    k = torch.arange(1, count + 1, dtype=torch.float64)
    return torch.cos(0.7 * k * k + 1.3 * k)


@dataclass(eq=False)
class Value:
    """One content of one tensor, without the content."""

    producer: int | None  # the call that made it, None for what was there before the step
    number: float  # its dot product with `weights`
    size: float  # the sum of its absolute values: how large a rounding may be
    edge: object  # its place in autograd's graph, None outside of it
    shape: tuple
    dtype: torch.dtype
    device: torch.device
    tensor: int  # the tensor's serial number
    address: int  # where the content lies
    wants_grad: bool
    support: object = None  # what keeps the graph behind `edge`


@dataclass(eq=False)
class Call:
    """One call of one of PyTorch's functions. `reads` and `writes` are positions of values."""

    name: str
    frames: list[Frame]  # the user's lines, from the innermost outwards
    inner: str  # the innermost function's file, which may lie in a library
    reads: list[int]
    writes: list[int] = field(default_factory=list)
    grad: bool = True  # were gradients on?
    inference: bool = False  # under inference_mode?
    opaque: bool = False  # inside the forward of a torch.autograd.Function, where no graph is to be expected
    off: bool = False  # a call that switches requires_grad off
    result: object = None  # a plain number, or a hook's handle
    numbers: tuple = ()  # the plain numbers among its arguments
    options: dict = field(default_factory=dict)  # its keyword arguments that are True, False or None
    region: Frame | None = None  # the line that had switched gradients off
    wrote: frozenset = frozenset()  # the addresses of what it wrote to in place


def tensors_in(thing, found=None) -> list[Tensor]:
    found = [] if found is None else found
    if isinstance(thing, Tensor):
        found.append(thing)
    elif isinstance(thing, list | tuple):
        for part in thing:
            tensors_in(part, found)
    elif isinstance(thing, dict):
        for part in thing.values():
            tensors_in(part, found)
    return found


def numbers_in(thing) -> tuple[float, ...]:
    if isinstance(thing, float | int) and not isinstance(thing, bool):
        return (float(thing),)
    if isinstance(thing, list | tuple):
        return tuple(number for part in thing for number in numbers_in(part))
    return ()


def short_name(function) -> str:
    name = (resolve_name(function) or getattr(function, "__name__", "") or "").split(".")
    return ".".join(name[-2:]) if name[-1] in ("__get__", "__set__") else name[-1]


def numbers_for(count: int) -> Tensor:
    """The first `count` of `weights`, of which only a few lengths are kept."""
    return weights(1 << max(10, (count - 1).bit_length()))[:count]


def project(t: Tensor) -> tuple[float, float]:
    """(the content's dot product with `weights`, the sum of its absolute values), nan inside a torch.func transform."""
    numbers = numbers_for(t.numel())
    try:
        flat = t.detach().to("cpu", torch.float64).reshape(-1)
        return (flat @ numbers).item(), flat.abs().sum().item()
    except RuntimeError:
        return math.nan, 0.0


def address(t: Tensor) -> int:
    """Where the content lies; views and `.data` have the address of what they look at."""
    try:
        return t.untyped_storage().data_ptr() or id(t)
    except (RuntimeError, NotImplementedError):  # inside a torch.func transform
        return id(t)


def edge(t: Tensor):
    """The place in autograd's graph of a tensor that requires grad."""
    try:
        return get_gradient_edge(t)
    except (RuntimeError, AssertionError):  # a view made under no_grad says that it requires grad, and has no graph
        return None


def support(t: Tensor, place) -> object:
    """What keeps the graph behind a place whose node is written in Python. In PyTorch 2.7 the place itself does not:
    as soon as the tensor is gone, such a node is an empty shell. A node that follows it holds it up.
    """
    if not isinstance(getattr(place, "node", None), BackwardCFunction) or hasattr(place, "ownership_token"):
        return None
    with torch.enable_grad():
        return t.view_as(t).grad_fn


class Recording(NamedTuple):
    """One recorded run. `loss` is None when the step raised `error`; `last` is the position of the loss's value."""

    calls: list[Call]
    values: list[Value]
    loss: Tensor | None
    last: int | None
    error: Exception | None
    leaves: set[int]  # the serial numbers of the meta-parameters

    def taker(self, call: Call) -> Call:
        """The call that took the gradient which `call` returned: itself, or the backward before it read `.grad`."""
        backward = call.options.get("backward") if call.name == "grad.__get__" else None
        return call if backward is None else self.calls[backward]
