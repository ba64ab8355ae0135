"""Whatever a step changes outside itself, put back: the doctor runs somebody's step a few times and leaves no mark.

keep = Keeper(step)
keep.run(step, meta)    # may train a global model, draw random numbers, fill .grad, switch autograd off
keep.restore()
"""

import copy
import random
import sys
from functools import partial, wraps
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from unittest.mock import patch

import torch
from torch import Tensor

from metalib.places import is_library


class Keeper:
    """Holds the state of all that `step` can reach: its closure, the globals it names, its defaults, its self."""

    def __init__(self, step):
        self.tensors, self.holders, self.generators, self.seen = [], [], [], set()
        numpy = sys.modules.get("numpy")
        self.random = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
        self.settings = torch.is_grad_enabled(), torch.get_default_dtype()
        self.hooks: list = []
        todo = _roots(step)
        while todo:
            todo += self._visit(todo.pop())

    def _visit(self, thing) -> list:
        """Keep one thing's state; what else it leads to."""
        if id(thing) in self.seen or isinstance(thing, str | int | float | bool | type(None)):
            return []
        self.seen.add(id(thing))
        if isinstance(thing, Tensor):
            if thing.is_meta:
                return []
            place, grad = thing.detach(), thing.grad if thing.is_leaf else None
            self.tensors.append((thing, place, place.clone(), thing.requires_grad, grad))
            return [grad]
        if isinstance(thing, torch.Generator):
            self.generators.append((thing, thing.get_state()))
        elif isinstance(thing, dict):
            self.holders.append((thing, dict(thing)))
            return list(thing.values())
        elif isinstance(thing, list | set):
            self.holders.append((thing, copy.copy(thing)))
            return list(thing)
        elif isinstance(thing, tuple):
            return list(thing)
        elif isinstance(thing, FunctionType | MethodType | partial):
            return _roots(thing)
        elif _is_somebodys(thing):
            methods = [part for kind in type(thing).__mro__ for part in vars(kind).values()]
            return [vars(thing), *(part for part in methods if isinstance(part, FunctionType))]
        return []

    def run(self, step, *given):
        """Run it from the kept state. What it changes stays until the next run, since a graph may still need it."""
        self.restore()
        original = Tensor.register_hook

        @wraps(original)
        def register(t, hook):
            self.hooks.append(original(t, hook))
            return self.hooks[-1]

        with patch.object(Tensor, "register_hook", register):
            return step(*given)

    def restore(self) -> None:
        while self.hooks:
            self.hooks.pop().remove()
        torch.set_grad_enabled(self.settings[0])
        torch.set_default_dtype(self.settings[1])
        torch.set_rng_state(self.random[0])
        random.setstate(self.random[1])
        if self.random[2] is not None:
            sys.modules["numpy"].random.set_state(self.random[2])
        for holder, before in self.holders:
            if isinstance(holder, dict):
                if holder.keys() != before.keys() or any(holder[key] is not before[key] for key in before):
                    holder.clear()
                    holder.update(before)
            elif isinstance(holder, list):
                holder[:] = before
            elif holder != before:
                holder.clear()
                holder.update(before)
        with torch.no_grad():
            for t, place, content, wants_grad, grad in self.tensors:
                if not torch.equal(place, content):
                    place.copy_(content)
                if t.data_ptr() != place.data_ptr() or t.shape != place.shape:
                    t.data = place
                if t.is_leaf:
                    t.requires_grad_(wants_grad)
                    t.grad = grad
        for generator, state in self.generators:
            generator.set_state(state)


def _roots(function) -> list:
    """What a function can reach."""
    found = []
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, MethodType):
        found, function = [function.__self__], function.__func__
    if not isinstance(function, FunctionType) or is_library(function.__code__.co_filename):
        return [*found, function]
    cells = [cell for cell in function.__closure__ or () if cell != CellType()]
    names, codes = set(), [function.__code__]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [part for part in code.co_consts if hasattr(part, "co_names")]
    found += [cell.cell_contents for cell in cells]
    found += [value for name, value in function.__globals__.items() if name in names]
    return found + list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())


def _is_somebodys(thing) -> bool:
    """An object whose attributes may hold weights: a module, an optimizer, an instance of the user's own class."""
    if isinstance(thing, torch.nn.Module | torch.optim.Optimizer | SimpleNamespace):
        return True
    if isinstance(thing, type | ModuleType) or not hasattr(thing, "__dict__"):
        return False
    home = type(thing).__module__
    file = getattr(sys.modules.get(home), "__file__", None)
    return home == "__main__" or (file is not None and not is_library(file))
