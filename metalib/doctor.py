"""The doctor: which line broke the meta-gradient, why, and the repair.

    from metalib import diagnose
    print(diagnose(meta_step, meta))

The referee finds out whether there is anything to explain. Then the step is recorded, call by call, at three
neighbouring meta-parameters, and the first value whose change autograd does not know leads to the line.
"""

import sys
import time

import torch
from torch import Tensor

from metalib.causes import CAUSES
from metalib.culprit import Finding, explain_break, place
from metalib.diagnosis import Diagnosis, Stop, explained
from metalib.doubts import second_thoughts
from metalib.failures import explain_error, overwritten
from metalib.keep import Keeper
from metalib.nonfinite import explain_nan
from metalib.places import Frame, line_in
from metalib.referee import Step, alike, check_meta, fresh, referee
from metalib.report import Report, Undecided
from metalib.suspects import Study, first_break, moves, path, reaches, study
from metalib.trace import record
from metalib.unused import unread_result

FEW = 16  # with more numbers than this in `meta`, each tensor is judged along one direction
PATIENCE = 5.0  # seconds before the first word on progress


def diagnose(step: Step, meta: dict[str, Tensor]) -> Diagnosis:
    """Judge the meta-gradient of `step` at `meta` and name the line that broke it.

    step    {name: tensor} -> scalar outer loss. Whatever it changes outside itself (a module's weights, .grad, random
            states, the grad mode) is put back before each run and at the end.
    meta    {name: floating tensor}; copied, to float64 where the step allows it, and never changed.

    Raises Undecided, as the referee does, when the step cannot be judged. Says on stderr how far it is if it takes more
    than a few seconds.

    >>> import torch
    >>> from metalib import diagnose
    >>> found = diagnose(lambda meta: (1 - meta["rate"].data) ** 2, {"rate": torch.tensor(0.1)})
    >>> print(f"{found.cause}: {found.repair}")
    data_read: Use the tensor itself, without `.data`.
    """
    with torch.inference_mode(False), torch.enable_grad():  # whatever surrounds the call
        return _diagnose(step, meta)


def _diagnose(step: Step, meta: dict[str, Tensor]) -> Diagnosis:
    check_meta(meta)
    keep, progress = Keeper(step), _Progress()

    def kept(leaves):
        progress.tick()
        return keep.run(step, leaves)

    try:
        try:
            report, meta = _judge(kept, meta)
        except Undecided:
            if found := _not_a_number(step, keep, meta):
                nothing = dict.fromkeys(meta)
                report = Report("raises", dict.fromkeys(meta, "raises"), nothing, nothing)
                return _diagnosis(report, found, list(meta))
            raise
        names = [name for name, verdict in report.by_parameter.items() if verdict == report.verdict]
        if report.verdict == "right":
            return _diagnosis(report, second_thoughts(keep.run(record, step, fresh(meta))), names)
        seen = study(step, meta, names, keep)
        finding, way = _find(seen, step, report, keep)
        return _diagnosis(report, finding, names, way)
    finally:
        keep.restore()


def _not_a_number(step: Step, keep: Keeper, meta) -> Finding | None:
    """The finding for a step that returns anything but one number."""
    base = keep.run(record, step, fresh(meta))
    if base.error is not None or (isinstance(base.loss, Tensor) and base.loss.numel() == 1):
        return None
    if base.last is None:
        code = getattr(step, "__code__", None)
        where = Frame(code.co_filename, code.co_firstlineno) if code else None
        return Finding("not_a_number", where, f"a {type(base.loss).__name__}")
    made = base.values[base.last].producer
    where = place(base.calls[made]) if made is not None else None
    return Finding("not_a_number", where, f"a tensor of shape {tuple(base.loss.shape)}")


def _judge(step: Step, meta) -> tuple[Report, dict[str, Tensor]]:
    """(the referee's report, the meta-parameters in the precision it used): float64 where the step allows it."""
    doubles = {name: alike(p, p.detach().double()) for name, p in meta.items()}
    try:
        report = _referee(step, doubles)
    except Undecided as refusal:
        if "torch.float32" not in str(refusal):
            raise
    else:
        if report.verdict != "raises" or "dtype" not in str(report.error):
            return report, doubles
    return _referee(step, meta, double=False), meta


def _referee(step: Step, meta, double: bool = True) -> Report:
    """The referee's report; along one direction for each meta-parameter when there are too many numbers to ask for."""
    if sum(p.numel() for p in meta.values()) <= FEW:
        return referee(step, meta, double=double)
    generator = torch.Generator().manual_seed(11)
    towards = {}
    for name, p in meta.items():
        signs = 2.0 * torch.randint(0, 2, p.shape, generator=generator).to(p.dtype) - 1
        towards[name] = p.detach().abs().clamp(min=0.01) * signs.to(p.device) / p.numel() ** 0.5

    def along(moved):
        """The step's loss, with autograd's own claim of its slope along each direction."""
        shifted = {name: p.detach() + (moved[name].item() - 1) * towards[name] for name, p in meta.items()}
        leaves = fresh({name: alike(meta[name], p) for name, p in shifted.items()})
        loss = step(leaves)
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            return loss
        grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        slopes = [(name, (g * towards[name]).sum()) for name, g in zip(leaves, grads, strict=True) if g is not None]
        return loss.detach() + sum(slope.detach() * (moved[name] - moved[name].item()) for name, slope in slopes)

    return referee(along, {name: torch.ones((), dtype=p.dtype) for name, p in meta.items()}, double=double)


def _find(seen: Study, step: Step, report: Report, keep: Keeper) -> tuple[Finding, tuple[Stop, ...]]:
    if report.verdict == "raises":
        return explain_error(seen, report.error, step, keep), ()
    if report.verdict == "independent":
        return unread_result(seen, step, keep), ()
    if report.verdict == "nan":
        return explain_nan(seen), ()
    index = first_break(seen)
    if index is None:
        return Finding("unnamed", None), ()
    finding = explain_break(seen, index)
    way = _way(seen, index, finding)
    if finding.cause == "wrong_formula":
        finding = overwritten(step, seen, keep) or finding
    return finding, way


def _way(seen: Study, index: int, finding: Finding) -> tuple[Stop, ...]:
    """From the meta-parameter to the outer loss, line by line: a few stops before the break, and a few after it."""
    base = seen.base
    connected = reaches(base, seen.leaves, seen.direction)
    guilty, stops = finding.frame, []
    for i in path(base, base.last):
        frame = None if base.values[i].producer is None else place(base.calls[base.values[i].producer])
        if frame is not None and guilty is not None and moves(seen, i):
            stops.append(Stop(line_in(frame, guilty), i < index and i in connected))
    cut = [Stop(line_in(guilty, guilty), False)] if guilty else []
    before = [stop for stop in dict.fromkeys(stops) if stop.known and stop.label not in {c.label for c in cut}]
    after = [stop for stop in dict.fromkeys(stops) if not stop.known and stop not in cut]
    start, end = Stop(", ".join(seen.direction), True), Stop("outer loss", False)
    return (start, *before[-2:], *cut, *after[:1], end)


def _diagnosis(report: Report, finding: Finding | None, names: list[str], way=()) -> Diagnosis:
    judged = {"claimed": report.claimed, "expected": report.expected, "by_parameter": report.by_parameter}
    if finding is None:
        return Diagnosis(report.verdict, **judged)
    said = explained(finding, CAUSES, ", ".join(names))
    return Diagnosis(report.verdict, **said, **judged, error=report.error, way=way)


class _Progress:
    """Counts runs of the step, and says so on stderr when they take long."""

    def __init__(self):
        self.start = self.told = time.monotonic()
        self.runs = 0

    def tick(self) -> None:
        self.runs += 1
        now = time.monotonic()
        if now - self.start > PATIENCE and now - self.told > PATIENCE:
            self.told = now
            print(f"doctor: {self.runs} runs of the step, {now - self.start:.0f} s", file=sys.stderr)
