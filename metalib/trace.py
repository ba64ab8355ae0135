"""A recording of one run of somebody's step: each PyTorch call, the line it stands on, what it read and what it wrote.

Every content that a tensor has had becomes a `Value`. A value keeps one number, the dot product of the content with
fixed random weights, and its place in autograd's graph, but not the content: a long step is recorded in little memory.
Two recordings at neighbouring meta-parameters then say how each value really changes; autograd says what it believes.
"""

import math
import weakref

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from metalib.places import run_step, stack
from metalib.recording import (  # noqa: I001
    NUMBERS,
    SWITCHES,
    Call,
    Recording,
    Value,
    address,
    edge,
    numbers_in,
    project,
    short_name,
    support,
    tensors_in,
)
from metalib.unseen import watch_compile, watch_parameters


class Recorder(TorchFunctionMode):
    """Records while it is active. `calls` and `values` refer to each other by position."""

    def __init__(self):
        super().__init__()
        self.calls: list[Call] = []
        self.values: list[Value] = []
        self.known: dict[int, tuple] = {}  # id of a tensor -> (weak reference, its state, its value)
        self.writer: dict[int, int] = {}  # address of a storage -> the last call that wrote to it
        self.unset: set[int] = set()  # addresses of memory that torch.empty has left as it was
        self.count = 0
        self.busy = False  # our own arithmetic is not to be recorded
        self.grad_on, self.region, self.backward = torch.is_grad_enabled(), None, None

    def __enter__(self):
        self.patches = [watch_parameters(self), watch_compile(self)]
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
        call.wrote = frozenset(address(t) for t in written)
        if name == "__setitem__" and isinstance(args[1], slice):
            call.options["part"] = args[1].start, args[1].stop
        if name == "backward":
            self.backward = len(self.calls)
        index = len(self.calls)
        self.calls.append(call)
        new = {id(t): t for t in [*written, *outputs]}
        self.unset -= call.wrote
        if name.startswith("empty"):
            self.unset |= {address(t) for t in outputs}
        old = {address(t) for t in inputs}
        if name != "grad.__get__":
            for t in new.values():  # a view of an input is no new content
                if address(t) not in old or any(t is one for one in written):
                    self.writer[address(t)] = index
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
        place, node = address(t), t.grad_fn
        return version, place, self.writer.get(place), id(node) if node is not None else t.requires_grad

    def read(self, t: Tensor) -> int:
        """The position of the value that `t` has now; a new one when its content, or its place in the graph, is new."""
        state, entry = self.state(t), self.known.get(id(t))
        if entry is not None and entry[0]() is t and entry[1] == state:
            return entry[2]
        return self.write(t, state[2])

    def serial(self, t: Tensor) -> int:
        """A number of its own for each tensor: Python gives the id of one that is gone to the next."""
        entry = self.known.get(id(t))
        if entry is not None and entry[0]() is t:
            return entry[3]
        self.count += 1
        return self.count

    def gradient(self, t: Tensor, index: int) -> int:
        """What `.grad` holds: made by the last backward, which no call shows, unless a call has written to it since."""
        entry, place = self.known.get(id(t)), address(t)
        if entry is not None and entry[0]() is t:
            if entry[1] == self.state(t):
                return entry[2]
            if entry[1][2] != self.writer.get(place):
                return self.write(t, self.writer[place])
        elif place in self.writer:
            return self.write(t, self.writer[place])
        self.writer[place] = index
        return self.write(t, index)

    def write(self, t: Tensor, producer: int | None) -> int:
        number, size, node = math.nan, 0.0, None
        if t.is_floating_point() and address(t) not in self.unset:
            number, size = project(t)
            if t.requires_grad:
                node = edge(t)
        me, wants = self.serial(t), t.requires_grad
        self.values.append(
            Value(
                producer, number, size, node, tuple(t.shape), t.dtype, t.device, me, address(t), wants, support(t, node)
            )
        )
        self.known[id(t)] = (weakref.ref(t), self.state(t), len(self.values) - 1, me)
        return len(self.values) - 1


def record(step, meta: dict[str, Tensor]) -> Recording:
    """Run the step once at these leaves and record it; an exception of the step is part of the recording."""
    recorder, loss, last, error = Recorder(), None, None, None
    leaves = {recorder.values[recorder.read(p)].tensor for p in meta.values()}
    with recorder:
        try:
            loss = run_step(step, dict(meta))
        except Exception as raised:
            error = raised
    if isinstance(loss, Tensor):
        last = recorder.read(loss)
    return Recording(recorder.calls, recorder.values, loss, last, error, leaves)
