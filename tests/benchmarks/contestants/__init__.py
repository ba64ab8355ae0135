"""Everybody who is timed, behind one signature.

    contestant = make("higher", task, inner_steps=5, dtype="float64")

    loss, gradient = contestant.meta_gradient()     the outer loss and d loss / d meta-parameter, as floats
    contestant.step()                               one whole outer step, Adam on the meta-parameters included

Each is written as a user of that library would write it, and asks for the meta-parameters' gradient only. A library is
imported with the first contestant that needs it.

    contestant = make_sweep("metalib, batched", tasks.sweep(64), inner_steps=20, dtype="float64")

does the same for many runs: `meta_gradient` gives a list of losses and a list of derivatives, `step` steps them all.
"""

from importlib import import_module

PLAIN = "plain"

HOMES = {
    PLAIN: ("plain", {}),
    "metalib": ("ours", {"mode": "auto"}),
    "metalib, reverse": ("ours", {"mode": "reverse"}),
    "metalib, forward": ("ours", {"mode": "forward"}),
    "higher": ("peer_higher", {}),
    "torchopt": ("peer_torchopt", {}),
    "learn2learn": ("peer_learn2learn", {}),
    "JAX, reverse": ("peer_jax", {"mode": "reverse"}),
    "JAX, forward": ("peer_jax", {"mode": "forward"}),
}

SWEEPS = {
    PLAIN: ("plain", {}),
    "metalib, batched": ("ours", {}),
    "JAX, vmap, reverse": ("peer_jax", {"mode": "reverse"}),
    "JAX, vmap, forward": ("peer_jax", {"mode": "forward"}),
}


def make(name: str, task, inner_steps: int, dtype: str = "float32"):
    home, options = HOMES[name]
    return import_module(f"contestants.{home}").Contestant(task, inner_steps, dtype, **options)


def make_sweep(name: str, runs: list, inner_steps: int, dtype: str = "float32"):
    home, options = SWEEPS[name]
    return import_module(f"contestants.{home}").Sweep(runs, inner_steps, dtype, **options)


def available(homes=HOMES) -> tuple[list[str], dict[str, str]]:
    """Whose library can be imported, and for the others the last line of what was raised."""
    here, missing = [], {}
    for name, (home, _) in homes.items():
        try:
            import_module(f"contestants.{home}")
            here.append(name)
        except (ImportError, RuntimeError, AttributeError, TypeError) as problem:  # what old libraries die of
            missing[name] = f"{type(problem).__name__}: {problem}".strip().splitlines()[-1]
    return here, missing
