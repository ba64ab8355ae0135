"""The doctor leaves no trace: whatever the step touches is afterwards as it was before, for right and wrong steps."""

import random

import numpy
import pytest
import torch

from metalib.doctor import diagnose

D = torch.float64


class World:
    """Everything that a careless step may change."""

    def __init__(self):
        torch.manual_seed(0)
        layers = torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1)
        self.net = torch.nn.Sequential(*layers).to(D)
        self.net[0].register_forward_hook(lambda module, args, out: None)
        self.weight = torch.tensor([0.3, -0.2], dtype=D, requires_grad=True)
        self.weight.grad = torch.tensor([5.0, 6.0], dtype=D)
        self.weight.register_hook(lambda g: None)
        self.table = torch.arange(6, dtype=D).reshape(2, 3)
        self.whole = torch.tensor([1, 2, 3])
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.adam = torch.optim.Adam([self.weight], lr=0.1)
        self.generator = torch.Generator().manual_seed(5)
        self.history, self.counts, self.names = [1.0], {"steps": 3}, {"a"}
        self.nested = {"deep": [{"tensor": torch.ones(2, dtype=D)}]}
        self.x = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
        for _ in range(2):  # so that there is a state of the optimisers, running statistics, and .grad
            self.net(self.x).sum().backward()
            self.optimizer.step()
        self.adam.step()

    def tensors(self):
        """name -> every tensor of it, its .grad and the optimisers' states too."""
        found = {name: thing for name, thing in vars(self).items() if isinstance(thing, torch.Tensor)}
        found |= {f"net.{name}": thing for name, thing in self.net.state_dict(keep_vars=True).items()}
        found["nested"] = self.nested["deep"][0]["tensor"]
        found |= {f"{name}.grad": thing.grad for name, thing in found.items() if thing.grad is not None}
        for name in ("optimizer", "adam"):
            for at, state in enumerate(getattr(self, name).state.values()):
                found |= {f"{name}.{at}.{key}": part for key, part in state.items() if isinstance(part, torch.Tensor)}
        return found

    def trace(self) -> dict:
        """All that can be compared, by name."""
        tensors = self.tensors()
        seen = {f"{name} content": thing.tolist() for name, thing in tensors.items()}
        seen |= {f"{name} identity": (id(thing), thing.data_ptr()) for name, thing in tensors.items()}
        seen |= {f"{name} flags": (thing.requires_grad, thing.is_leaf, thing.dtype) for name, thing in tensors.items()}
        seen |= {f"{name} hooks": len(thing._backward_hooks or ()) for name, thing in tensors.items()}
        for name, module in self.net.named_modules():
            seen[f"net.{name} mode"] = module.training
            seen[f"net.{name} hooks"] = (len(module._forward_hooks), len(module._backward_hooks))
            seen[f"net.{name} parts"] = sorted(vars(module)), sorted(module._parameters), sorted(module._modules)
        seen["optimizer groups"] = [group["lr"] for group in self.optimizer.param_groups]
        seen["optimizer states"] = len(self.optimizer.state), len(self.adam.state)
        seen["lists"] = list(self.history), dict(self.counts), set(self.names), sorted(self.nested), sorted(vars(self))
        seen["generator"] = self.generator.get_state().tolist()
        seen["torch random"] = torch.get_rng_state().tolist()
        seen["python random"] = random.getstate()
        seen["numpy random"] = str(numpy.random.get_state())
        seen["modes"] = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()
        seen["threads"] = torch.get_num_threads()
        seen["patched"] = torch.nn.Parameter.__new__, torch.compile
        return seen


WORLD = World()


def careless(rate):
    """Touch everything, and give a number that depends on `rate` and on what was touched."""
    w = WORLD
    noise = torch.rand((), dtype=D) + random.random() + numpy.random.rand()
    noise = noise + torch.rand((), generator=w.generator, dtype=D)
    w.optimizer.zero_grad()
    w.net.eval()
    w.net.train()
    w.net(w.x).sum().backward()
    w.optimizer.step()
    w.optimizer.param_groups[0]["lr"] *= 0.5
    (w.weight**2).sum().backward()
    w.adam.step()
    with torch.no_grad():
        w.table.mul_(0.5)
        w.nested["deep"][0]["tensor"].add_(1)
        w.whole += 1
    w.history.append(2.0)
    w.counts["steps"] += 1
    w.names.add("b")
    w.nested["new"] = torch.zeros(1)
    w.net.new_buffer = torch.zeros(1)
    w.net[2].weight.requires_grad_(False)
    w.net[2].register_forward_hook(lambda module, args, out: None)
    inner = torch.tensor([0.5, -0.5], dtype=D, requires_grad=True)
    (g,) = torch.autograd.grad((torch.tanh(w.x @ inner) ** 2).sum(), inner, create_graph=True)
    adapted = inner - rate * g * (1 + 0.1 * noise)
    return (torch.tanh(w.x @ adapted) ** 2).sum() + 0 * w.net(w.x).sum().detach()


def right(meta):
    loss = careless(meta["rate"])
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return loss


def silent(meta):
    return careless(meta["rate"].detach())


def number(meta):
    return careless(meta["rate"].item())


def unused(meta):
    return careless(0.1)


def raising(meta):
    loss = careless(meta["rate"])
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    raise ValueError(f"after the damage is done: {loss}")


def in_place(meta):
    loss = careless(meta["rate"])
    WORLD.net[0].weight.sub_(meta["rate"])
    return loss


def not_a_number(meta):
    return careless(meta["rate"]) * torch.ones(2)


def hooked(meta):
    WORLD.weight.register_hook(lambda g: None)
    return careless(meta["rate"])


class Step:
    """The same as an object, which finds the world in its attributes."""

    def __init__(self):
        self.world, self.runs = WORLD, 0

    def __call__(self, meta):
        self.runs += 1
        return careless(meta["rate"])


class Far:
    """An object that finds the world among the globals of its method."""

    def __call__(self, meta):
        return careless(meta["rate"])


class FarModule(torch.nn.Module):
    def forward(self, meta):
        return careless(meta["rate"])


def closure():
    world = WORLD

    def step(meta):
        world.history.append(3.0)
        return careless(meta["rate"])

    return step


STEPS = {
    "right": [right, hooked, Step(), Far(), FarModule(), closure(), lambda meta: careless(meta["rate"])],
    "cut": [silent, number],
    "independent": [unused],
    "raises": [raising, in_place, not_a_number],
}


def names():
    for verdict, steps in STEPS.items():
        for step in steps:
            name = getattr(step, "__name__", type(step).__name__)
            yield pytest.param(verdict, step, id=f"{verdict}-{name}")


@pytest.mark.parametrize(("verdict", "step"), list(names()))
def test_all_is_as_before(verdict, step):
    before = WORLD.trace()
    meta = {"rate": torch.tensor(0.1, dtype=D, requires_grad=True)}
    meta["rate"].grad = torch.tensor(7.0, dtype=D)
    try:
        found = diagnose(step, meta)
        after = WORLD.trace()
    finally:  # one test must not spoil the next
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        globals()["WORLD"].__init__()
    assert {name: (before[name], after.get(name)) for name in before if before[name] != after.get(name)} == {}
    assert before.keys() == after.keys()
    assert found.verdict == verdict, found
    assert (meta["rate"].item(), meta["rate"].grad.item(), meta["rate"].requires_grad) == (0.1, 7.0, True)


def test_the_settings_are_those_of_the_caller():
    """Not the usual ones: what the caller has set is what comes back."""
    try:
        torch.set_default_dtype(torch.float64)
        with torch.no_grad():
            assert diagnose(lambda meta: meta["rate"] ** 2, {"rate": torch.tensor(0.3)}).verdict is not None
            assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
