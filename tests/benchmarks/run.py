"""The benchmarks, in one command: install the peers, check that all agree, time them, draw the results.

python tests/benchmarks/run.py                          everything, about an hour
python tests/benchmarks/run.py --quick                  small K only, few rounds
python tests/benchmarks/run.py --tasks classifier       one of the tasks, without memory and start-up

The peers live in an environment of their own, tests/benchmarks/.venv, made with the Python that runs this; delete it to
install them anew. On Linux, tell pip where the small CPU build of torch is, as in the README, by PIP_EXTRA_INDEX_URL.
What comes out: results/results.json, table.md and ratios.png. Only the standard library is imported here: see fresh.py.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import venv
from datetime import date
from pathlib import Path

from clock import spread
from contestants import HOMES, PLAIN

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
NOTES = VENV / "peers.json"

BASE = ["torch==2.13.0", "numpy", "matplotlib", "cython<3.1", "setuptools", "wheel"]  # the last three: learn2learn

# For each peer the ways to install it, in turn. learn2learn's own list of requirements would fetch a torchvision that
# brings another torch; its shipped C files do not compile from Python 3.11 on, but Cython can write them anew.
PEERS = {
    "higher": [["higher==0.2.1"]],
    "torchopt": [["torchopt==0.7.3"]],
    "learn2learn": [
        ["--no-deps", "learn2learn==0.2.0"],
        ["--no-deps", "--no-build-isolation", "--use-pep517", "--config-settings=--global-option=build_ext"]
        + ["learn2learn==0.2.0"],
    ],
    "jax": [["jax==0.10.2", "optax==0.2.8"]],
}
REPORTED = ("torch", "numpy", "higher", "torchopt", "learn2learn", "jax", "jaxlib", "optax")

FIRST = (PLAIN, "metalib", "higher", "torchopt", "learn2learn", "JAX, reverse")
MEMORY_STEPS = {"all": (1, 10, 50, 200), "metalib": (1000,)}


def child(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run the environment's Python: one thread, metalib from this checkout, bytecode cached as on anyone's machine."""
    settings = {"PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([str(PYTHON), *arguments], cwd=HERE, env=rest | settings, text=True, **options)


def install(*what: str) -> str:
    """The line of pip's output that says why it could not; empty where it could."""
    # pip would keep a wheel that took a detour to build, and the next environment would not need the detour.
    pip = child("-m", "pip", "install", "--no-cache-dir", *what, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if pip.returncode == 0:
        return ""
    lines = [line.strip() for line in pip.stdout.splitlines() if re.search("error", line, re.IGNORECASE)]
    return next((line for line in lines if "fatal error" in line), lines[-1] if lines else pip.stdout[-200:])


def environment() -> dict[str, str]:
    """Make the environment unless it stands; what had to be said about each peer that did not simply install."""
    if NOTES.exists():
        return json.loads(NOTES.read_text())
    venv.create(VENV, with_pip=True)
    if reason := install(*BASE):
        raise SystemExit(f"the environment cannot be made: {reason}")
    notes = {}
    for peer, ways in PEERS.items():
        print(f"installing {peer}", flush=True)
        reasons = []
        for way in ways:
            if reason := install(*way):
                reasons.append(f"pip install {' '.join(way)}: {reason}")
            else:
                reasons += [f"pip install {' '.join(way)} does"] * bool(reasons)
                break
        if reasons:
            notes[peer] = "; ".join(reasons)
    NOTES.write_text(json.dumps(notes, indent=1))
    return notes


def answer(*arguments: str) -> str:
    """What a script prints. Its errors and its progress go to the terminal."""
    done = child(*arguments, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}")
    return done.stdout


def about() -> dict:
    cpu = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", cpu.read_text()) if cpu.exists() else None
    packages = json.loads(answer("-m", "pip", "list", "--format=json"))
    versions = {package["name"]: package["version"] for package in packages}
    return {
        "date": date.today().isoformat(),
        "cpu": model[1] if model else platform.processor(),
        "python": answer("-c", "import platform; print(platform.python_version())").strip(),
        "versions": {name: versions[name] for name in REPORTED if name in versions},
    }


def first_steps(names: list[str], rounds: int) -> dict[str, list[float]]:
    """CPU seconds to the first outer step in a fresh process: minimum, median, maximum."""
    seconds = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names:
            taken = float(answer("fresh.py", "first", name))
            if turn:  # the first turn reads the disk and writes bytecode
                seconds[name].append(taken)
    return {name: spread(taken) for name, taken in seconds.items()}


def memory(names: list[str], repeats: int) -> dict[str, dict[int, list[float]]]:
    """MiB that the peak grows by, each in a fresh process: minimum, median, maximum."""
    grown = {}
    for name in names:
        steps = MEMORY_STEPS["all"] + MEMORY_STEPS.get(name, ())
        grown[name] = {k: spread(megabytes(name, k) for _ in range(repeats)) for k in steps}
    return grown


def megabytes(name: str, inner_steps: int) -> float:
    return float(answer("fresh.py", "memory", name, str(inner_steps)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", help="one weight, classifier, 784-256-10, sweep; without it, all of them")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="the folder for what comes out")
    chosen = parser.parse_args()
    rounds = chosen.rounds or (3 if chosen.quick else 15)
    results = {"notes": environment(), **about(), "rounds": rounds}
    tasks = ["--tasks", *chosen.tasks] if chosen.tasks else []
    results |= json.loads(answer("measure.py", "--rounds", str(rounds), *tasks, *["--quick"] * chosen.quick))
    keep(results, chosen.results)  # half an hour's work should not hang on what follows
    if not chosen.tasks:
        print("first steps and memory, each in fresh processes", flush=True)
        here = [name for name in HOMES if name not in results["left out"]]
        results["first"] = first_steps([name for name in FIRST if name in here], 2 if chosen.quick else 7)
        if os.name == "posix":  # Windows does not tell a process its peak in this way
            results["memory"] = memory(here, 1 if chosen.quick else 3)
        keep(results, chosen.results)
    print(answer("report.py", str(chosen.results.resolve())))


def keep(results: dict, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
