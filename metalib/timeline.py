"""A recording of a whole training loop: beside every call, what happens to optimisers and to gradients, in order."""

import weakref
from dataclasses import dataclass, field
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from metalib.functions import graph_nodes
from metalib.places import Frame, stack
from metalib.recording import edge, short_name, tensors_in
from metalib.trace import Recorder


@dataclass(eq=False)
class Event:
    """`kind` is "made" (an optimiser), "zero" (gradients cleared), "grad", "backward" or "step"; `at` the number of
    calls before.

    `leaves` are the serial numbers of the tensors that the event is about: the optimiser's, the cleared ones, those
    that backward reaches.
    `full` are those of them whose .grad held something other than zeros when the event began.
    """

    kind: str
    frames: list[Frame]
    at: int
    leaves: list[int]
    full: set[int] = field(default_factory=set)
    optimizer: torch.optim.Optimizer | None = None
    size: int = 0  # of the graph that a backward goes through
    alive: int = 0  # outer losses of earlier backward calls that still hold their graph
    create_graph: bool = False

    @property
    def place(self) -> Frame | None:
        return self.frames[0] if self.frames else None


class LoopRecorder(Recorder):
    def __init__(self):
        super().__init__()
        self.events: list[Event] = []
        self.tensors: dict[int, Tensor] = {}
        self.losses: list[weakref.ref] = []

    def __enter__(self):
        mode = super().__enter__()
        optimizer, module, recorder = torch.optim.Optimizer, nn.Module, self
        made, zeroed, cleared = optimizer.__init__, optimizer.zero_grad, module.zero_grad

        def init(self, *args, **kwargs):
            made(self, *args, **kwargs)
            recorder.note("made", held(self), self)

        def zero_optimizer(self, *args, **kwargs):
            recorder.note("zero", held(self), self)
            return zeroed(self, *args, **kwargs)

        def zero_module(self, *args, **kwargs):
            recorder.note("zero", list(self.parameters()))
            return cleared(self, *args, **kwargs)

        for owner, name, new in (
            (optimizer, "__init__", init),
            (optimizer, "zero_grad", zero_optimizer),
            (module, "zero_grad", zero_module),
        ):
            self.patches.append(patch.object(owner, name, new))
            self.patches[-1].start()

        def step(used, args, kwargs):
            self.note("step", held(used), used)

        self.hook = register_optimizer_step_pre_hook(step)
        return mode

    def __exit__(self, *error):
        self.hook.remove()
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = short_name(func)
        if not self.busy and name in ("backward", "grad") and (roots := tensors_in(args[:1])):
            self._taken(name, roots[0], kwargs or {})
        elif not self.busy and name == "grad.__set__" and args[1:] == (None,):
            self.note("zero", [args[0]])
        return super().__torch_function__(func, types, args, kwargs)

    def _taken(self, name: str, root: Tensor, options: dict) -> None:
        """A gradient is about to be taken. Only `backward` fills .grad."""
        nodes = graph_nodes([edge(root)]) if root.requires_grad else []
        inputs = tensors_in(options.get("inputs") or []) if name == "backward" else []
        reached = [node.variable for node in nodes if hasattr(node, "variable")]
        if inputs:
            asked = {id(t) for t in inputs}
            reached = [leaf for leaf in reached if id(leaf) in asked]
        alive = sum(loss() is not None and loss().grad_fn is not None for loss in self.losses)
        if name == "backward" or not options.get("create_graph"):
            self.losses.append(weakref.ref(root))
        event = self.note("backward" if name == "backward" else "grad", reached)
        event.size, event.alive, event.create_graph = len(nodes), alive, bool(options.get("create_graph"))

    def note(self, kind: str, leaves: list[Tensor], optimizer=None) -> Event:
        self.busy, busy = True, self.busy
        serials = [self.values[self.read(p)].tensor for p in leaves]
        self.tensors.update(zip(serials, leaves, strict=True))
        full = {s for s, p in zip(serials, leaves, strict=True) if p.grad is not None and p.grad.count_nonzero() > 0}
        self.events.append(Event(kind, stack()[0], len(self.calls), serials, full, optimizer))
        self.busy = busy
        return self.events[-1]


def held(optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]
