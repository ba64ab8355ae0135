"""Learning a learning rate in PyTorch: the module behind the notebooks. Read its files in this order:

tasks, noisy, problems, rates, versions, settings, unroll, differences, report, referee, optimisers, randomness, twice,
trial, own, inputs, modes, forward, batched, choice, metagrad, edge, resume, train, tables, together, sweep, describe,
figures, grid, axes, trajectory, exercises, controls, lab, compare, workbench, places, recording, unseen, trace, keep,
suspects, functions, causes, culprit, watcher, unused, doubts, nonfinite, failures, diagnosis, doctor, timeline,
loop_causes, learned, loop_faults, outer, cells
"""

__version__ = "0.1.0"
__all__ = ["FromModule", "diagnose", "diagnose_loop", "diagnose_source", "meta_gradient"]


def __getattr__(name: str):
    """The engine and the doctor, loaded when they are asked for: importing metalib loads nothing."""
    homes = {
        "FromModule": "own",
        "meta_gradient": "metagrad",
        "diagnose": "doctor",
        "diagnose_loop": "outer",
        "diagnose_source": "cells",
        "load_ipython_extension": "cells",
    }
    if name not in homes:
        raise AttributeError(f"module 'metalib' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"metalib.{homes[name]}"), name)
