"""Modules whose meta-gradient would be wrong without a word: told before the first inner step.

An inner loss must be a function of the weights that it is given, and of nothing that changes from call to call.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from metalib.problems import Batch, Weights
from metalib.randomness import drawing
from metalib.report import reachable
from metalib.twice import COMPILED, LossOf, check_twice
from metalib.unroll import fresh_leaves

OUTSIDE = (
    "call meta_gradient outside of the transforms of torch.func (grad, vmap, jvp, …): it differentiates by itself, and "
    "mode 'batched' computes many runs at once"
)


def refuse(module: nn.Module) -> None:
    """ValueError, with a sentence, for what can be seen without running the module."""
    if not isinstance(module, nn.Module):
        raise ValueError(f"module is {module!r}: give a torch.nn.Module")
    for name, layer in module.named_modules():
        parts = [layer, *vars(layer).get("_forward_pre_hooks", {}).values()]
        if any(type(part).__name__ in ("_WeightNorm", "WeightNorm") for part in parts):
            raise ValueError(
                "the module has weight_norm, whose second derivative is wrong in PyTorch: take it out with "
                "torch.nn.utils.parametrize.remove_parametrizations, or compute g * v / v.norm() in a layer of your own"
            )
        if isinstance(layer, torch.jit.ScriptModule):
            raise ValueError(f"{name or 'the module'} is compiled by torch.jit: give the plain module")
        if isinstance(layer, nn.Embedding) and (layer.scale_grad_by_freq or layer.sparse):
            what = "sparse" if layer.sparse else "scale_grad_by_freq"
            raise ValueError(f"{name or 'the module'} is an Embedding with {what}=True: build it without")
        if any(vars(layer).get(hooks) for hooks in ("_backward_hooks", "_full_backward_hooks", "_backward_pre_hooks")):
            raise ValueError(f"{name or 'the module'} has backward hooks, which change gradients unseen: remove them")
    for name, p in module.named_parameters():
        if isinstance(p, nn.parameter.UninitializedParameter):
            raise ValueError(f"parameter {name!r} has no shape yet: call the module once on an input")
        if p.is_meta:
            raise ValueError(f"parameter {name!r} is on the meta device and has no numbers: build it on the cpu")
        if p.is_complex() and p.requires_grad:
            raise ValueError(f"parameter {name!r} is complex: give its real and its imaginary part as two parameters")
        if getattr(p, "_backward_hooks", None):
            raise ValueError(
                f"parameter {name!r} has a gradient hook, which an inner step would not run: remove it (to clip "
                "gradients, give meta_gradient optimiser=Clipped(norm))"
            )


def try_out(
    loss_of: LossOf,
    weights: Weights,
    batch: Batch,
    copy: nn.Module,
    learned: Weights,
    double: Callable[[], LossOf],
) -> bool:
    """Compute the loss twice, on copies of the weights. ValueError where it is no function of the weights alone.

    `copy` is the module that computes it; `learned` are the user's own parameters, which must have no part in it;
    `double` makes the same loss in float64. False where these weights do not show all that is looked for.
    """
    inside = {name: t for name, t in [*copy.named_buffers(), *copy.named_parameters()] if t is not None}
    before = {name: t.detach().clone() for name, t in inside.items()}
    trial, losses = fresh_leaves(weights), []
    for _ in range(2):
        with drawing(0, weights), torch.enable_grad():
            losses.append(first_loss(loss_of, trial, batch, "the first inner batch"))
    if not isinstance(losses[0], Tensor) or losses[0].dim():
        return False  # refused by whoever asked for the loss, in words of its own
    _unchanged(before, dict([*copy.named_buffers(), *copy.named_parameters()]), "buffer or frozen parameter")
    _unchanged({name: w.detach() for name, w in weights.items()}, trial, "weight")
    if not torch.allclose(*(loss.detach() for loss in losses), rtol=1e-5, equal_nan=True):
        values = " and then ".join(f"{loss.item():.6g}" for loss in losses)
        raise ValueError(
            f"the same weights give the loss {values}: the module or the criterion remembers something, or draws "
            "random numbers from elsewhere than torch's generator; make it a function of its inputs"
        )
    strangers = {id(p): name for name, p in learned.items()}
    for tensor in leaves_of(losses[0]):
        if id(tensor) in strangers:
            raise ValueError(
                f"the loss uses the module's own parameter {strangers[id(tensor)]!r} and not the inner loop's weights: "
                "read parameters as attributes of their layers, in forward (an outside list of them is not replaced)"
            )
    _differentiable(losses[0], trial)
    return check_twice(loss_of, losses[0], weights, batch, double)


def first_loss(loss_of: LossOf, weights: Weights, batch: Batch, which: str) -> Tensor:
    """The loss on a batch that was not tried before. What the module or the criterion raises becomes a ValueError."""
    try:
        return loss_of(dict(weights), batch)
    except Exception as error:
        message = str(error).partition("\n")[0]
        raise ValueError(
            f"on {which} the module or the criterion raises {type(error).__name__}: {message}. Check the shapes, the "
            "dtypes and the devices of what you gave"
        ) from error


@contextmanager
def in_words(mode: str):
    """A ValueError with the next step, for the refusals of PyTorch's own that are to be expected in meta_gradient."""
    try:
        yield
    except RuntimeError as error:
        message = str(error)
        if "derivative for" in message:
            kernel = "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)"
            hint = f"; choose the kernel that can: `with {kernel}:`" if "scaled_dot_product" in message else ""
            raise ValueError(f"the inner loss cannot be differentiated twice ({message}){hint}") from error
        if mode == "batched" and any(word in message.lower() for word in ("vmap", "batching rule", "batched tensor")):
            sentence = f"this loss cannot run under vmap, so call meta_gradient once for each run: {message}"
            raise ValueError(sentence) from error
        if "aot_autograd" in message or "donated buffer" in message:
            raise ValueError(COMPILED) from error
        if "backward through the graph a second time" in message:
            raise ValueError(
                "the loss calls backward, or keeps a graph from an earlier call: compute it anew from the weights each "
                "time, and leave differentiating to meta_gradient"
            ) from error
        if "functorch" in message or "vmap" in message:
            raise ValueError(f"{OUTSIDE} ({message.partition('. ')[0]})") from error
        raise


def transformed(t: Tensor) -> bool:
    """Whether a transform of torch.func has wrapped this tensor: its gradient would be a sum over what vmap hides."""
    try:
        t.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return True
    return False


def check_loss(loss, runs: int = 0) -> Tensor:
    """The loss, or a ValueError where it cannot be one; `runs` is 1 where a first dimension counts runs."""
    if not isinstance(loss, Tensor) or not loss.is_floating_point() or loss.is_meta:
        raise ValueError(f"the loss is {loss!r}: return a real floating-point tensor with one number")
    if loss.dim() != runs:
        shape = tuple(loss.shape[runs:])
        raise ValueError(f"the loss has shape {shape}: return one number, for instance loss.mean()")
    if not loss.requires_grad:
        raise ValueError(
            "the loss has no graph that leads to the weights: compute it from the weights that are passed in, without "
            "detach, .data or no_grad"
        )
    return loss


def check_unwritten(kept: Weights, weights: Weights) -> None:
    """ValueError for weights that a loss has written into; they are put back."""
    for name, w in weights.items():
        if not torch.equal(w, kept[name]) and not torch.equal(*(torch.nan_to_num(t) for t in (w, kept[name]))):
            with torch.no_grad():
                w.copy_(kept[name])
            raise ValueError(f"the loss writes into weights[{name!r}]: compute it without changing what it is given")


def _unchanged(before: Weights, after: Weights, what: str) -> None:
    for name in before.keys() & after.keys():
        pair = [torch.nan_to_num(t.detach()) for t in (before[name], after[name])]
        if pair[0].shape != pair[1].shape or not torch.equal(*pair):
            raise ValueError(
                f"the module writes its {what} {name!r} while it computes, so it is another function at each call: "
                "call module.eval() before, or take that layer out"
            )


def leaves_of(value: Tensor) -> Iterator[Tensor]:
    """The leaves that a tensor was computed from."""
    return (node.variable for node in reachable([value.grad_fn]) if hasattr(node, "variable"))


def _differentiable(loss: Tensor, weights: Weights) -> None:
    """The gradient must not need the module again: activation checkpointing would run it without our weights."""
    if not loss.requires_grad:
        return
    try:
        torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    except Exception as error:
        raise ValueError(
            f"the inner gradient cannot be computed ({type(error).__name__}: {error}): if the module uses "
            "torch.utils.checkpoint, turn it off; notebook 07 has ways to save memory that work here"
        ) from error
