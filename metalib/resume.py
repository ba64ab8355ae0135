"""Where a run stands, so that it can be stopped, saved and gone on with: the same records as one that never stopped.

    state = start(settings)
    for record in train(settings, state):      # stop whenever you like
        ...
    save_state(state, "run.json")

    state = load_state("run.json")             # another day, another kernel
    for record in train(state.settings, state):
        ...

The file is JSON: numbers as repr writes them, which gives every float back exactly, and the generator's state as
hexadecimal digits. Loading it runs no code.
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from metalib.optimisers import Adam
from metalib.problems import PROBLEMS, Weights
from metalib.settings import DTYPES, Settings
from metalib.unroll import begin

FORMAT = "metalib run, 1"


@dataclass
class State:
    """Everything that the next outer step depends on. `train` keeps it up to date; `step` have been done."""

    settings: Settings
    step: int
    numbers: dict[str, float]
    memory: tuple[dict[str, float], ...]
    weights: Weights
    generator: torch.Generator

    def set(self, **fields) -> None:
        """All at once: an interrupt comes before or after it, and the state is that of a whole number of steps."""
        vars(self).update(fields)


def start(settings: Settings) -> State:
    """The state before the first outer step.

    >>> from metalib.resume import start
    >>> from metalib.settings import Settings
    >>> from metalib.train import train
    >>> state = start(Settings(outer_steps=3))
    >>> len(list(train(state.settings, state))), state.step
    (3, 3)
    """
    generator, weights, meta = begin(settings)
    numbers = {name: p.item() for name, p in meta.items()}  # a step of Adam on plain numbers costs next to nothing
    return State(settings, 0, numbers, Adam().start(numbers), weights, generator)


def check_same(state: State, settings: Settings) -> None:
    """ValueError where the state is of another run; it may be given more outer steps, or fewer."""
    for name, value in asdict(replace(settings, outer_steps=state.settings.outer_steps)).items():
        theirs = getattr(state.settings, name)
        if value != theirs:
            raise ValueError(f"the state is of a run with {name} {theirs!r}, not {value!r}: go on with state.settings")


def save_state(state: State, path: str | Path) -> None:
    """Write the state to a file. The file is there as a whole or not at all, an older one is replaced.

    >>> from metalib.resume import save_state, start
    >>> from metalib.settings import Settings
    >>> save_state(start(Settings(seed=7)), "run.json")
    """
    content = {
        "format": FORMAT,
        "settings": asdict(state.settings),
        "step": state.step,
        "numbers": state.numbers,
        "memory": state.memory,
        "weights": {name: w.detach().cpu().tolist() for name, w in state.weights.items()},
        "generator": bytes(state.generator.get_state().tolist()).hex(),
    }
    write_whole(path, json.dumps(content))


def load_state(path: str | Path) -> State:
    """The state that `save_state` wrote. A ValueError says why another file is none; the file is left alone.

    >>> from metalib.resume import load_state, save_state, start
    >>> from metalib.settings import Settings
    >>> save_state(start(Settings(seed=7)), "run.json")
    >>> load_state("run.json").settings.seed
    7
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: give a file that save_state wrote ({error.reason})") from None
    except json.JSONDecodeError as error:
        half = f"{path}, line {error.lineno}: not JSON, or cut off in the middle"
        raise ValueError(f"{half} ({error.msg}): give a file that save_state wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is JSON, but not a run: give a file that save_state wrote")
    try:
        return _state(content)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} holds a run that cannot be read ({error!r}): save it again") from error


def _state(content: dict) -> State:
    """Checked against a fresh start: the names and shapes must be those of the settings' problem and rate model."""
    settings = Settings(**content["settings"])
    new = start(settings)
    numbers = _like(content["numbers"], new.numbers, "numbers")
    memory = tuple(_like(part, new.numbers, "memory") for part in content["memory"])
    if len(memory) != len(new.memory):
        raise ValueError("memory has another length")
    generator = torch.Generator()
    generator.set_state(torch.tensor(list(bytes.fromhex(content["generator"])), dtype=torch.uint8))
    kind = {"dtype": DTYPES[settings.dtype], "device": settings.device}
    weights = {name: torch.tensor(w, **kind) for name, w in content["weights"].items()}
    if {n: w.shape for n, w in weights.items()} != {n: w.shape for n, w in new.weights.items()}:
        raise ValueError(f"the weights are not those of {PROBLEMS[settings.problem].name}")
    step = content["step"]
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"step is {step!r}")
    return State(settings, step, numbers, memory, weights, generator)


def _like(given: dict, numbers: dict[str, float], what: str) -> dict[str, float]:
    if set(given) != set(numbers):
        raise ValueError(f"{what} are given for {', '.join(given)}, not for {', '.join(numbers)}")
    return {name: float(given[name]) for name in numbers}


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file so that nobody ever finds half of it: to a neighbour first, which then takes its place.

    OSError with a sentence where that cannot be done.
    """
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with open(beside, "w", newline="", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror or error}. Choose another place") from error
