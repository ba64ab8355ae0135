"""One run's choices, each checked when it is made, so that a wrong one gets a sentence and not a traceback from inside.

A `Settings` holds only names and numbers: it can be compared, printed, written to a table and read back.
"""

from dataclasses import dataclass
from numbers import Integral, Real

import torch

from metalib.problems import PROBLEMS
from metalib.rates import RATES
from metalib.versions import VERSIONS

DTYPES = {"float32": torch.float32, "float64": torch.float64}
LIMITS = {"inner_steps": (1, 1_000), "outer_steps": (1, 100_000), "seed": (0, 2**32 - 1)}
SMALLEST_RATE, LARGEST_RATE = 1e-12, 1e6


def devices() -> dict[str, str]:
    """Every device the workbook knows, with "" where it can be used here and else the reason why it cannot.

    >>> from metalib.settings import devices
    >>> devices()["cpu"]
    ''
    """
    cuda = mps = ""
    if not torch.cuda.is_available():
        cuda = "this PyTorch was built without CUDA" if torch.version.cuda is None else "no usable NVIDIA GPU was found"
    if not torch.backends.mps.is_available():
        built = torch.backends.mps.is_built()
        mps = "this macOS or Mac is too old" if built else "it needs PyTorch for macOS on Apple silicon"
    return {"cpu": "", "cuda": cuda, "mps": mps}


def one_of(kind: str, value, options) -> str:
    """The value, or a ValueError that lists the options."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"unknown {kind} {value!r}: choose one of {', '.join(map(repr, options))}")
    return str(value)


def whole(kind: str, value, low: int, high: int) -> int:
    """The value as a plain int, which a table can hold and NumPy's cannot; or a ValueError that gives the range."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{kind} is {value!r}: give a whole number from {low:,} to {high:,}")
    return int(value)


def positive(kind: str, value) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value <= LARGEST_RATE:  # nan fails both comparisons
        raise ValueError(f"{kind} is {value!r}: give a number above 0 and at most {LARGEST_RATE:,.0f}")
    if value < SMALLEST_RATE:
        raise ValueError(f"{kind} is {value!r}: give at least {SMALLEST_RATE:g}, smaller rates vanish in float32")
    return float(value)


def known(chosen: dict) -> dict:
    """The same, or a ValueError for a name that is no field of Settings."""
    for name in chosen:
        one_of("setting", name, vars(Settings()))
    return chosen


@dataclass(frozen=True)
class Settings:
    """What to run.

    `start_rate` is the inner learning rate at the first outer step; `meta_rate` the step size of Adam on the
    meta-parameters (for a constant rate: on its logarithm, so 0.05 changes the rate by about 5% an outer step).
    With `carry` an outer step begins with the weights that the last one ended with; without it, at w₀ again.
    `truncation` differentiates only through the last so many inner steps; None means all. A ValueError names the first
    choice that cannot be.

    >>> from metalib.settings import Settings
    >>> Settings(inner_steps=5).start_rate
    0.1
    >>> Settings(inner_steps=0)
    Traceback (most recent call last):
    ValueError: inner_steps is 0: give a whole number from 1 to 1,000
    """

    problem: str = "one weight"
    version: str = "functional"
    rate: str = "constant"
    inner_steps: int = 1
    outer_steps: int = 200
    meta_rate: float = 0.05
    start_rate: float = 0.1
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float32"
    carry: bool = False
    truncation: int | None = None

    def __post_init__(self):
        one_of("problem", self.problem, PROBLEMS)
        one_of("version", self.version, VERSIONS)
        one_of("rate model", self.rate, RATES)
        one_of("dtype", self.dtype, DTYPES)
        one_of("device", self.device, devices())
        for name, (low, high) in LIMITS.items():
            self._set(name, whole(name, getattr(self, name), low, high))
        for name in ("meta_rate", "start_rate"):
            self._set(name, positive(name, getattr(self, name)))
        if not isinstance(self.carry, bool):
            raise ValueError(f"carry is {self.carry!r}: give True or False")
        if self.truncation is not None:
            self._set("truncation", whole("truncation", self.truncation, *LIMITS["inner_steps"]))
            if self.truncation > self.inner_steps:
                few = f"truncation is {self.truncation}, more than the inner steps, {self.inner_steps}"
                raise ValueError(f"{few}: choose at least {self.truncation} inner steps, or a smaller truncation")
        if self.device == "mps" and self.dtype == "float64":
            raise ValueError("device 'mps' has no float64: choose dtype 'float32', or device 'cpu'")

    def _set(self, name: str, value) -> None:
        object.__setattr__(self, name, value)  # frozen, but still being made

    def check_device(self) -> None:
        """A ValueError, with the reason, when this machine lacks the device. Not asked before a run starts, so that
        the table of a run from another machine can be read here."""
        known = devices()
        if known[self.device]:
            here = ", ".join(repr(name) for name, reason in known.items() if not reason)
            raise ValueError(f"device {self.device!r} cannot be used: {known[self.device]}. Choose one of {here}")
