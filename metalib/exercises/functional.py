"""Notebook 05: the functional inner loop."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from metalib.describe import best_rate
from metalib.exercises.checking import Finding, exercise, goal
from metalib.exercises.lookalikes import descend
from metalib.exercises.loops import examine_loop
from metalib.exercises.modules import Task, examine_module, task
from metalib.exercises.parsons import Line, Names, letters, program
from metalib.rates import Meta
from metalib.report import Undecided
from metalib.train import Run


def _gradient(at: Names, create_graph: bool) -> None:
    (at["grad"],) = torch.autograd.grad(at["loss"], at["w"], create_graph=create_graph)


HEAD = "def descend(w, rate, K, inner_loss, losses):"
LINES = {
    "A": Line("    return w", lambda at: at["w"]),
    "B": Line("        (grad,) = torch.autograd.grad(loss, w)", partial(_gradient, create_graph=False)),
    "C": Line("        w = w - rate * grad", lambda at: at.update(w=at["w"] - at["rate"] * at["grad"])),
    "D": Line("        losses.append(loss.item())", lambda at: at["losses"].append(at["loss"].item())),
    "E": Line("    for _ in range(K):", lambda at: range(at["K"])),
    "F": Line(
        "        w = w.detach() - rate * grad", lambda at: at.update(w=at["w"].detach() - at["rate"] * at["grad"])
    ),
    "G": Line("        loss = inner_loss(w)", lambda at: at.update(loss=at["inner_loss"](at["w"]))),
    "H": Line(
        "        (grad,) = torch.autograd.grad(loss, w, create_graph=True)", partial(_gradient, create_graph=True)
    ),
}


@exercise("5.1", "Eight lines, two too many", minutes=5)
def lines_in_order(answer: str) -> Finding:
    shown = []
    try:
        order = letters(answer, LINES)
        shown = [HEAD, *(LINES[letter].text for letter in order), ""]
        run = program(order, LINES)
    except Undecided as refusal:
        return Finding(False, f"{refusal}.", shown)
    finding = examine_loop(
        lambda w, rate, K, loss: run(w=w, rate=rate, K=K, inner_loss=loss, losses=[]),
        lookalikes={"twice": lambda w, rate, K, loss: descend(w, 2 * rate, K, loss)},
        reasons={"twice": "each step moves the weights twice"},
    )
    return Finding(finding.solved, finding.why, shown + finding.seen)


@exercise("5.2", "The loop for any module", minutes=8)
def loop_for_a_module(answer: Callable) -> Finding:
    def rate(meta):
        return meta["rate"]

    return examine_module(answer, task(3, 4, 1), {"rate": torch.tensor(0.1).double()}, give=rate, spread=rate)


RATES = {"fc3": 0.05, "fc1": 0.1, "fc2": 0.3}  # not in the order of the layers


@exercise("5.3", "A rate for each layer", minutes=6)
def rate_for_each_layer(answer: Callable) -> Finding:
    network = task(3, 4, 4, 1)
    faults, reasons = _faults(network)
    meta = {name: torch.tensor(rate, dtype=torch.float64) for name, rate in RATES.items()}
    return examine_module(answer, network, meta, dict, partial(_spread, network), faults, reasons)


def _spread(task: Task, rates: Meta) -> Tensor:
    """The rate of each number in the flat weights: that of its layer, or of its own name if that has one."""
    pieces = task.net.named_parameters()
    return torch.cat([rates.get(name, rates.get(name[:3])).expand(p.numel()) for name, p in pieces])


def _faults(task: Task) -> tuple[dict[str, Callable[[Meta], Tensor]], dict[str, str]]:
    """Other ways to hand out the rates, and what is said of each."""
    layers = sorted(RATES)
    named = {
        "mean": ("every layer moves with the mean of the rates", lambda r: dict.fromkeys(r, sum(r.values()) / 3)),
        "sum": ("every layer moves with the sum of the rates", lambda r: dict.fromkeys(r, sum(r.values()))),
        "order": (
            "the rates are handed out in the order of the dict, which need not be that of the layers: look up each "
            "layer's rate by its name",
            lambda r: dict(zip(layers, r.values(), strict=True)),
        ),
        "reversed": (
            "the layers have each other's rates: the first has the last one's",
            lambda r: dict(zip(layers, (r[name] for name in layers[::-1]), strict=True)),
        ),
    }
    for name in layers:
        named |= {
            f"all {name}": (f"every layer moves with the rate of {name}", lambda r, n=name: dict.fromkeys(r, r[n])),
            f"no {name}": (f"the layer {name} does not move", lambda r, n=name: r | {n: 0 * r[n]}),
            f"cut {name}": (
                f"the layer {name} moves, but no gradient reaches its rate",
                lambda r, n=name: r | {n: r[n].detach()},
            ),
            f"only {name}": (
                f"every layer moves, but a gradient reaches the rate of {name} only",
                lambda r, n=name: {other: rate if other == n else rate.detach() for other, rate in r.items()},
            ),
        }
    for kind in ("bias", "weight"):
        named[f"no {kind}"] = (
            f"no layer's {kind} moves",
            lambda r, kind=kind: r | {f"{name}.{kind}": 0 * r[name] for name in layers},
        )
    faults = {kind: lambda meta, fault=fault: _spread(task, fault(meta)) for kind, (_, fault) in named.items()}
    return faults, {kind: why for kind, (why, _) in named.items()}


@goal(
    "05",
    "one weight, constant rate: a K at which first_order ends at one and a half times the best rate or more, and "
    "another one, above 1, at which it ends nearer to the best rate than functional",
)
def led_astray_and_lucky(runs: list[Run]) -> str:
    exact = {run.settings: _off(run) for run in _ended(runs, "functional")}
    first = [(run, replace(run.settings, version="functional")) for run in _ended(runs, "first_order")]
    astray = [run for run, _ in first if _end(run) >= 1.5 * best_rate(run.settings)]
    lucky = [run for run, twin in first if run.settings.inner_steps > 1 and _off(run) < exact.get(twin, 0.0)]
    pairs = [(a, b) for a in astray for b in lucky if a.settings.inner_steps != b.settings.inner_steps]
    if not pairs:
        return ""
    said = [
        f"{_end(run):.2f} at K = {run.settings.inner_steps} (best {best_rate(run.settings):.2f})" for run in pairs[0]
    ]
    return f"first_order ends at {said[0]}, and at {said[1]}, nearer than functional."


def _ended(runs: list[Run], version: str) -> list[Run]:
    """The runs of a version that went to their end, where the best rate is known."""
    whole = [run for run in runs if not run.error and len(run.records) == run.settings.outer_steps]
    return [run for run in whole if run.settings.version == version and best_rate(run.settings)]


def _end(run: Run) -> float:
    return next(iter(run.records[-1].rates.values()))


def _off(run: Run) -> float:
    return abs(_end(run) - best_rate(run.settings))
