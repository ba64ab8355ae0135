"""The referee: is this meta-gradient right? It needs no second implementation, and works on broken code too.

A loop that hides an update from autograd still computes the update. So its outer loss, evaluated at slightly different
meta-parameters, shows the gradient that autograd should have claimed. The referee compares the two.

What it cannot see: a right gradient of the wrong program, such as an outer loss taken on the training batch. And it
asks autograd for the meta-gradient alone; a plain `backward()` goes on to the initial weights and may raise on the way.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from metalib.differences import EPSILON, SINGLE, estimate
from metalib.rates import Meta
from metalib.report import VERDICTS, Evidence, Report, Undecided, verdict
from metalib.settings import Settings
from metalib.unroll import meta_step, one_thread

Step = Callable[[Meta], Tensor]


def referee(step: Step, meta: Meta, rtol: float = 1e-6, double: bool = True) -> Report:
    """Judge the gradient of `step` at `meta`, in float64.

    step    {name: tensor} -> scalar outer loss; called many times, so it must start from the same weights and the same
            data each time. PyTorch's CPU random state is put back before each call and at the end.
    meta    {name: floating tensor of any shape}; copied to float64, never changed.
    rtol    "right" means within this relative error, or within what float64 can resolve here.
    double  False leaves `meta` in its own dtype and accepts a float32 loss: differences then resolve a part in a
            thousand or so.

    Costs about 15 calls of `step` for each number in `meta`, and up to 160 for one that is hard to judge. Raises
    Undecided when the step cannot be judged: it gives another loss each time, its loss is not one float64 number, has
    converged to nothing, or is not smooth.

    >>> import torch
    >>> from metalib.referee import referee
    >>> print(referee(lambda meta: (1 - meta["rate"].data) ** 2, {"rate": torch.tensor(0.1)}))
    cut: the outer loss depends on it, but autograd says None or zero
      rate: autograd None, finite differences -1.8 (cut)
    """
    check_meta(meta)
    state = torch.get_rng_state()

    def repeatable(leaves):
        torch.set_rng_state(state)
        loss = step(dict(leaves))  # a copy: a step may put other things into its dict
        _check(loss, double)
        return loss

    try:
        with torch.inference_mode(False), torch.enable_grad():
            meta = {name: alike(p, p.detach().double() if double else p.detach()) for name, p in meta.items()}
            return _referee(repeatable, meta, rtol if double else max(rtol, 1e-3), EPSILON if double else SINGLE)
    finally:
        torch.set_rng_state(state)


def check_meta(meta) -> None:
    """Undecided, with a sentence, for anything but {name: a strided floating tensor with finite numbers}."""
    tensors = list(meta.values()) if isinstance(meta, dict) and all(isinstance(name, str) for name in meta) else []
    if not tensors or not all(isinstance(p, Tensor) and p.is_floating_point() for p in tensors):
        raise Undecided(f"meta is {meta!r}: give a dict of floating tensors, such as {{'rate': torch.tensor(0.1)}}")
    for name, p in meta.items():
        if p.numel() == 0 or p.layout != torch.strided:
            what = "sparse" if p.layout != torch.strided else "empty"
            raise Undecided(f"meta-parameter {name!r} is {what}: give a dense tensor with at least one number")
        if p.is_meta:
            raise Undecided(f"meta-parameter {name!r} is on the meta device and has no numbers: give one on the cpu")
        if not p.isfinite().all():
            raise Undecided(f"meta-parameter {name!r} holds nan or inf: judge the step at finite values")


def judge(settings: Settings) -> Report:
    """The referee's report on the first outer step of a run of ours.

    >>> from metalib.referee import judge
    >>> from metalib.settings import Settings
    >>> judge(Settings(version="first_order", inner_steps=2)).verdict
    'wrong'
    """
    with one_thread():
        return referee(*meta_step(settings))


def _referee(step: Step, meta: Meta, rtol: float, eps: float) -> Report:
    claimed, loss, error = _claims(step, meta)
    if loss is None or not math.isfinite(loss):
        worst = "nan" if error is None else "raises"
        return Report(worst, dict.fromkeys(meta, worst), claimed, dict.fromkeys(meta), error)
    again = step(fresh(meta)).item()
    if again != loss:
        raise Undecided(
            f"the step gives another loss each time ({loss:.9g}, then {again:.9g}): draw the batches and copy the "
            "weights before it, and seed any generator inside it"
        )
    expected, verdicts, refusals = {}, {}, []
    noise, wobble = _last_digits(step, meta, claimed, loss, eps)
    for name in meta:
        evidence = _evidence(step, meta, name, claimed[name], loss, noise, wobble[name], rtol)
        expected[name] = evidence.slope
        try:
            verdicts[name] = "raises" if error is not None else verdict(name, evidence, loss, rtol)
        except Undecided as refusal:
            verdicts[name] = "undecided"
            refusals.append(refusal)
    worst = next((one for one in VERDICTS if one in verdicts.values()), "right")
    if refusals and worst in ("independent", "right"):
        raise refusals[0]
    return Report(worst, verdicts, claimed, expected, error)


def fresh(meta: Meta) -> Meta:
    plain = torch.contiguous_format
    return {name: alike(p, p.detach().clone(memory_format=plain)).requires_grad_() for name, p in meta.items()}


def alike(p: Tensor, values: Tensor) -> Tensor:
    """`values` as the same kind of tensor as `p`: a module accepts only a Parameter in a parameter's place."""
    return nn.Parameter(values) if isinstance(p, nn.Parameter) else values


def _claims(step: Step, meta: Meta):
    """(gradients that autograd claims, loss, error): the loss is None when the forward pass itself raised."""
    leaves, nothing = fresh(meta), dict.fromkeys(meta)
    try:
        loss = step(leaves)
        value = loss.item()
    except Undecided:
        raise
    except Exception as error:  # whatever the reader's code raises is the finding
        return nothing, None, error
    if not loss.requires_grad:
        return nothing, value, None
    try:
        grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    except Exception as error:
        return nothing, value, error
    return dict(zip(leaves, (None if g is None else g.detach().cpu() for g in grads), strict=True)), value, None


def _check(loss, double: bool) -> None:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"{type(loss).__name__}"
        raise Undecided(f"the step returned {what}: return the outer loss as one number, for instance loss.mean()")
    if double and loss.dtype != torch.float64:
        raise Undecided(f"the outer loss is {loss.dtype}: build weights and data in float64, such as model.double()")


def _last_digits(step: Step, meta: Meta, claimed, loss: float, eps: float):
    """How much the loss and the claims change when every meta-parameter changes in its last digits: their own noise.

    Where something inside the step is float32, the last digits are those of float32: third differences show it.
    """

    def near(shift):
        moved = {name: alike(p, p.detach() * (1 + shift * p.detach().sign())) for name, p in meta.items()}
        return _claims(step, moved)[:2]

    noise = 0.0 if eps == EPSILON else eps * abs(loss)
    wobble = {name: torch.zeros(p.shape, dtype=torch.float64) for name, p in meta.items()}
    for digits in (1, -1, 3, -3):
        claims, value = near(digits * eps)
        noise = max(noise, abs((value or loss) - loss))
        for name, claim in claims.items():
            if claim is not None and claimed[name] is not None:
                wobble[name] = torch.maximum(wobble[name], (claim - claimed[name]).abs())
    for width in (2.37e-7, -2.9e-7, 4.3e-7):  # not all of them whole float32 steps, wherever the parameter is
        first, second, third = (near(width * steps)[1] or loss for steps in (1, 2, 3))
        noise = max(noise, abs(third - 3 * second + 3 * first - loss) / 4)
    return noise, wobble


def _evidence(step: Step, meta: Meta, name: str, claimed, loss: float, noise: float, wobble, rtol: float):
    values, found = [], []
    for index, start in enumerate(meta[name].detach().double().flatten().tolist()):

        def loss_at(number, index=index):
            leaves = fresh(meta)
            with torch.no_grad():
                leaves[name].view(-1)[index] = number
            try:
                result = step(leaves)
            except Undecided:
                raise
            except Exception:  # it ran at the start: a number this far away is outside its domain
                return math.nan
            values.append(result.item())
            return values[-1]

        claim = None if claimed is None else claimed.flatten()[index].item()
        rounded = 0.0 if meta[name].dtype == torch.float64 else SINGLE * abs(start * (claim or 0.0))
        found.append(estimate(loss_at, start, claim, noise + rounded, rtol))
    table = torch.tensor(found, dtype=torch.float64)
    slope, error, flat = (column.reshape(meta[name].shape) for column in table.unbind(dim=1))
    single = len(set(values)) > 5 and all(value == torch.tensor(value).item() for value in values)
    return Evidence(claimed, slope, 4 * (error + wobble), flat.bool(), any(value != loss for value in values), single)
