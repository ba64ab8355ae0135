"""A recording of one run of somebody's step: each PyTorch call, the line it stands on, what it read and what it wrote.

Every content that a tensor has had becomes a `Value`. A value keeps one number, the dot product of the content with
fixed random weights, and its place in autograd's graph, but not the content: a long step is recorded in little memory.
Two recordings at neighbouring meta-parameters then say how each value really changes; autograd says what it believes.
"""

import math
import weakref
from dataclasses import dataclass, field
from typing import NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode, resolve_name

from metalib.places import Frame, run_step, stack

NUMBERS = {"item", "__float__", "tolist", "numpy", "__int__", "__array__"}  # what takes a value out of PyTorch
SWITCHES = {"_set_grad_enabled", "backward", "register_hook", "requires_grad_", "requires_grad.__set__"}


def weights(count: int) -> Tensor:
    """Fixed numbers without a pattern, the first `count` of one endless sequence."""
    k = torch.arange(1, count + 1, dtype=torch.float64)
    return torch.cos(0.7 * k * k + 1.3 * k)


@dataclass(eq=False)
class Value:
    """One content of one tensor. `number` is its projection; `edge` its place in the graph, None outside of it."""

    producer: int | None
    number: float
    size: float
    edge: object
    shape: tuple
    dtype: torch.dtype
    tensor: int
    address: int
    wants_grad: bool


@dataclass(eq=False)
class Call:
    """One call: `inner` is the innermost function's file, which may lie in a library; `frames` are the user's only."""

    name: str
    frames: list[Frame]
    inner: str
    reads: list[int]
    writes: list[int] = field(default_factory=list)
    grad: bool = True
    inference: bool = False
    opaque: bool = False
    off: bool = False  # a call that switches requires_grad off
    result: object = None
    numbers: tuple = ()
    options: dict = field(default_factory=dict)
    region: Frame | None = None
    wrote: frozenset = frozenset()  # addresses of the storages written in place


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


class Recorder(TorchFunctionMode):
    """Records while it is active. `calls` and `values` refer to each other by position."""

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []
        self.values: list[Value] = []
        self.known: dict[int, tuple] = {}  # id of a tensor -> (weak reference, its state, its value)
        self.writer: dict[int, int] = {}  # address of a storage -> the last call that wrote to it
        self.unset: set[int] = set()  # addresses of memory that torch.empty has left as it was
        self.busy = False  # our own arithmetic is not to be recorded
        self.grad_on, self.region, self.backward = torch.is_grad_enabled(), None, None
        self.weights = weights(1024)

    def __enter__(self):
        self.patches = [patch.object(nn.Parameter, "__new__", self._parameter(nn.Parameter.__new__))]
        self.patches.append(patch.object(torch, "compile", self._compile(torch.compile)))
        for one in self.patches:
            one.start()
        return super().__enter__()

    def __exit__(self, *error):
        for one in self.patches:
            one.stop()
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, short_name(func)
        if self.busy:
            return func(*args, **kwargs)
        if name in ("__get__", "shape.__get__", "requires_grad.__get__", "is_leaf.__get__", "grad_fn.__get__"):
            return func(*args, **kwargs)
        inputs = tensors_in((args, kwargs))
        before = [self.state(t) for t in inputs]
        reads = [self.read(t) for t in inputs]
        try:
            result = func(*args, **kwargs)
        except Exception:
            self.record(name, args, kwargs, None, inputs, reads, [], [])
            raise
        outputs = tensors_in(result) if isinstance(result, Tensor | list | tuple | dict) else []
        written = [t for t, state in zip(inputs, before, strict=True) if self.state(t)[:2] != state[:2]]
        target = name.endswith("_") and not name.endswith("__") and name not in SWITCHES
        if inputs and (name in ("__setitem__", "data.__set__") or target):
            written += [inputs[0]] if not any(t is inputs[0] for t in written) else []
        if outputs or written or name in NUMBERS or name in SWITCHES:
            self.record(name, args, kwargs, result, inputs, reads, written, outputs)
        return result

    def record(self, name, args, kwargs, result, inputs, reads, written, outputs):
        frames, inner = stack()
        now = torch.is_grad_enabled()
        if name == "_set_grad_enabled":
            self.grad_on, self.region = now, None if now else (frames[0] if frames else None)
        elif now:
            self.grad_on, self.region = True, None
        plain = (name in NUMBERS and not isinstance(result, Tensor)) or name in SWITCHES
        call = Call(name, frames, inner, reads, grad=now, region=self.region)
        call.inference = torch.is_inference_mode_enabled()
        call.off = name.startswith("requires_grad") and (False in args[1:] or kwargs.get("requires_grad") is False)
        call.opaque = not now and self.grad_on and not call.inference
        call.numbers, call.result = numbers_in((args, list(kwargs.values()))), result if plain else None
        call.options = {key: value for key, value in kwargs.items() if isinstance(value, bool | type(None))}
        call.wrote = frozenset(self.address(t) for t in written)
        if name == "backward":
            self.backward = len(self.calls)
        index = len(self.calls)
        self.calls.append(call)
        new = {id(t): t for t in [*written, *outputs]}
        self.unset -= call.wrote
        if name.startswith("empty"):
            self.unset |= {self.address(t) for t in outputs}
        old = {self.address(t) for t in inputs}
        if name != "grad.__get__":
            for t in new.values():  # a view of an input is no new content
                if self.address(t) not in old or any(t is one for one in written):
                    self.writer[self.address(t)] = index
        if name == "grad.__get__":
            call.options["backward"] = self.backward
            call.writes = [self.gradient(t, index) for t in outputs]
        else:
            call.writes = [self.write(t, index) for t in new.values()]

    def extra(self, name: str, inputs, outputs, **kwargs) -> Call:
        """Record what is no call of PyTorch's that a mode can see."""
        self.busy = True
        self.record(name, (), kwargs, None, inputs, [self.read(t) for t in inputs], [], outputs)
        self.busy = False
        return self.calls[-1]

    def state(self, t: Tensor) -> tuple:
        try:
            version = t._version
        except RuntimeError:  # an inference tensor has none
            version = -1
        address = self.address(t)
        node = t.grad_fn
        return version, address, self.writer.get(address), id(node) if node is not None else t.requires_grad

    @staticmethod
    def address(t: Tensor) -> int:
        try:
            return t.untyped_storage().data_ptr() or id(t)
        except (RuntimeError, NotImplementedError):  # inside a torch.func transform
            return id(t)

    def read(self, t: Tensor) -> int:
        """The position of the value that `t` has now; a new one when its content, or its place in the graph, is new."""
        state, entry = self.state(t), self.known.get(id(t))
        if entry is not None and entry[0]() is t and entry[1] == state:
            return entry[2]
        return self.write(t, state[2])

    def gradient(self, t: Tensor, index: int) -> int:
        """What `.grad` holds: made by the last backward, which no call shows, unless a call has written to it since."""
        entry, address = self.known.get(id(t)), self.address(t)
        if entry is not None and entry[0]() is t:
            if entry[1] == self.state(t):
                return entry[2]
            if entry[1][2] != self.writer.get(address):
                return self.write(t, self.writer[address])
        elif address in self.writer:
            return self.write(t, self.writer[address])
        self.writer[address] = index
        return self.write(t, index)

    def write(self, t: Tensor, producer: int | None) -> int:
        number, size, edge = math.nan, 0.0, None
        if t.is_floating_point() and self.address(t) not in self.unset:
            number, size = self.project(t)
            if t.requires_grad:
                edge = self.edge(t)
        self.values.append(Value(producer, number, size, edge, tuple(t.shape), t.dtype, id(t), self.address(t), t.requires_grad))
        self.known[id(t)] = (weakref.ref(t), self.state(t), len(self.values) - 1)
        return len(self.values) - 1

    def project(self, t: Tensor) -> tuple[float, float]:
        count = t.numel()
        if count > len(self.weights):
            self.weights = weights(2 * count)
        try:
            flat = t.detach().to("cpu", torch.float64).reshape(-1)
            return (flat @ self.weights[:count]).item(), (flat.abs().sum()).item()
        except RuntimeError:  # inside a torch.func transform
            return math.nan, 0.0

    @staticmethod
    def edge(t: Tensor):
        try:
            return get_gradient_edge(t)
        except (RuntimeError, AssertionError):  # a view made under no_grad says that it requires grad, and has no graph
            return None

    def _parameter(self, original):
        def new(cls, data=None, requires_grad=True):
            made = original(cls, data, requires_grad)
            if isinstance(data, Tensor):
                self.extra("Parameter", [data], [made], requires_grad=requires_grad)
            return made

        return staticmethod(new)

    def _compile(self, original):
        """torch.compile must not see the recorder: what it makes runs without, and counts as one call."""

        def compile_(model=None, **kwargs):
            if model is None:
                return lambda model: compile_(model, **kwargs)
            frames, _ = stack()
            made = original(model, **kwargs)

            def run(*args, **kwargs):
                TorchFunctionMode.__exit__(self, None, None, None)
                try:
                    result = made(*args, **kwargs)
                finally:
                    TorchFunctionMode.__enter__(self)
                call = self.extra("compiled", tensors_in((args, kwargs)), tensors_in(result))
                call.frames = frames or call.frames
                return result

            return run

        return compile_


class Recording(NamedTuple):
    """One recorded run. `loss` is None when the step raised `error`; `last` is the position of the loss's value."""

    calls: list[Call]
    values: list[Value]
    loss: Tensor | None
    last: int | None
    error: Exception | None


def record(step, meta: dict[str, Tensor]) -> Recording:
    """Run the step once at these leaves and record it; an exception of the step is part of the recording."""
    recorder, loss, last, error = Recorder(), None, None, None
    with recorder:
        try:
            loss = run_step(step, dict(meta))
        except Exception as raised:
            error = raised
    if isinstance(loss, Tensor):
        last = recorder.read(loss)
    return Recording(recorder.calls, recorder.values, loss, last, error)
