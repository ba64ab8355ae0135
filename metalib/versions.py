"""The inner loop in every version that people write: two right ones, the mistakes, and two published answers.

    weights = version(weights, inner_losses, rates_of)    the weights after the last step, whatever the version
    weights         {name: leaf tensor that requires grad}, private to this call
    inner_losses    one function a step: weights -> scalar loss
    rates_of        loss -> {name: rate}; the rates carry the graph to the meta-parameters

They differ in one token, named in the first line of each docstring. The tests hold each to its symptom.

>>> from metalib.versions import VERSIONS
>>> print(VERSIONS["item"].__doc__)
Silent, the meta-gradient is None: `.item()` turns the rate into a plain number.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from metalib.problems import Weights

InnerLoss = Callable[[Weights], Tensor]
RatesOf = Callable[[Tensor], Weights]


def descent(loss_of: InnerLoss, weights: Weights, rates_of: RatesOf, wrt=None, create_graph=True) -> Weights:
    """{name: rate · gradient}: what one inner step takes away from each weight. All versions share it.

    `wrt` names other tensors to differentiate for; `create_graph=False` makes the gradient a constant.
    """
    loss = loss_of(weights)
    grads = torch.autograd.grad(loss, list((wrt or weights).values()), create_graph=create_graph)
    rates = rates_of(loss)
    return {name: rates[name] * grad for name, grad in zip(weights, grads, strict=True)}


def in_place(weights, inner_losses, rates_of):
    """Raises at once: `-=` on a leaf that requires grad."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        for name in weights:
            weights[name] -= step[name]
    return weights


def in_place_no_grad(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `torch.no_grad()` around the update hides it from autograd."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        with torch.no_grad():
            for name in weights:
                weights[name] -= step[name]
    return weights


def in_place_clone(weights, inner_losses, rates_of):
    """Right on a linear model and, for the rate's gradient alone, at one step; else raises: `-=` on a saved tensor.

    A network's update overwrites tensors that its own gradient saved. At one step autograd needs them only for the
    gradients of the weights, so `backward()`, which asks for these too, raises already there.
    """
    weights = {name: w.clone() for name, w in weights.items()}
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        for name in weights:
            weights[name] -= step[name]
    return weights


def data_write(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `.data` changes the value behind autograd's back."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        for name in weights:
            weights[name].data -= step[name]
    return weights


def detach(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `.detach()` keeps the value and drops its history."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        weights = {name: (w - step[name]).detach().requires_grad_() for name, w in weights.items()}
    return weights


def parameter_rewrap(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `nn.Parameter(...)` makes a new leaf (a published answer)."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        weights = {name: nn.Parameter(w.data - step[name].data) for name, w in weights.items()}
    return weights


def item(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `.item()` turns the rate into a plain number."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, lambda loss: {name: r.item() for name, r in rates_of(loss).items()})
        weights = {name: w - step[name] for name, w in weights.items()}
    return weights


class Buffers(nn.Module):
    """A module that keeps the weights as buffers, beside the parameters that they were made from.

    A buffer's name may not hold a dot, nor be one that the module has already. So the weights are numbered, and
    `weights()` gives their real names back.
    """

    def __init__(self, weights: Weights):
        super().__init__()
        self.names = {name: f"weight_{number}" for number, name in enumerate(weights)}
        for name, attribute in self.names.items():
            self.register_parameter(f"{attribute}_start", nn.Parameter(weights[name].detach()))
            self.register_buffer(attribute, weights[name].clone())

    def weights(self) -> Weights:
        return {name: getattr(self, attribute) for name, attribute in self.names.items()}


def buffer_published(weights, inner_losses, rates_of):
    """Raises at once: the gradient is asked for the parameter, the forward pass uses the buffer (published)."""
    weights = {name: w.detach() for name, w in weights.items()}
    module = Buffers(weights)
    for loss_of in inner_losses:
        step = descent(loss_of, module.weights(), rates_of, wrt=dict(module.named_parameters()))
        with torch.no_grad():
            for name, buffer in module.weights().items():
                buffer.copy_(buffer - step[name])
    return module.weights()


def buffer_no_grad(weights, inner_losses, rates_of):
    """Silent, the meta-gradient is None: `torch.no_grad()` around `copy_` (the published answer made to run)."""
    module = Buffers(weights)
    for loss_of in inner_losses:
        step = descent(loss_of, module.weights(), rates_of)
        with torch.no_grad():
            for name, buffer in module.weights().items():
                buffer.copy_(buffer - step[name])
    return module.weights()


def buffer_copy(weights, inner_losses, rates_of):
    """Right on a linear model and, for the rate's gradient alone, at one step; else raises: `copy_` writes in place."""
    module = Buffers(weights)
    for loss_of in inner_losses:
        step = descent(loss_of, module.weights(), rates_of)
        for name, buffer in module.weights().items():
            buffer.copy_(buffer - step[name])
    return module.weights()


def buffer_rebind(weights, inner_losses, rates_of):
    """Right: `=` binds the buffer's name to a new tensor, with its history; nothing is overwritten."""
    module = Buffers(weights)
    for loss_of in inner_losses:
        step = descent(loss_of, module.weights(), rates_of)
        for name, buffer in module.weights().items():
            setattr(module, module.names[name], buffer - step[name])
    return module.weights()


def first_order(weights, inner_losses, rates_of):
    """Right at one step, a wrong number from two on: `create_graph=False` makes each gradient a constant.

    With a rate from the loss it raises from two steps on: `create_graph=False` also frees the graph of the inner loss,
    and the rate needs that graph.
    """
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of, create_graph=False)
        weights = {name: w - step[name] for name, w in weights.items()}
    return weights


def functional(weights, inner_losses, rates_of):
    """Right at every number of steps: each step makes new tensors, and the graph runs through all of them."""
    for loss_of in inner_losses:
        step = descent(loss_of, weights, rates_of)
        weights = {name: w - step[name] for name, w in weights.items()}
    return weights


VERSIONS = {
    version.__name__: version
    for version in (
        in_place, in_place_no_grad, in_place_clone, data_write, detach, parameter_rewrap, item,
        buffer_published, buffer_no_grad, buffer_copy, buffer_rebind, first_order, functional,
    )
}  # fmt: skip
