"""
What a model takes from nothing to its first result: seconds and memory, cold and from the cache, beside onnxruntime.

    python benchmarks/startup.py                     # ResNet-50
    taskset -c 1 python benchmarks/startup.py my_network.onnx mobilenet_v2 --rounds 9

Each start is a process of its own, from its beginning to its first result, in turns; medians of several rounds are
printed. *Cold* finds nothing stored and compiles; *stored* loads what the cache has. Quotients are of the times of
onnxruntime, of a whole cold start, and of its session alone. Memory is the resident set `REST` seconds later, and the
largest while it ran.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import machine
from contest.workloads import NotAWorkload, Workload, names_of, write_workload
from glow_mlir.tools.arguments.bounded_numbers import count

START = """
import json, sys, time
import numpy as np
kind, model, inputs, rest = sys.argv[1:]
if kind == "onnxruntime":
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    def load(): return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
else:
    from glow_mlir import InferenceSession
    if kind == "imported":
        import glow_mlir.driver.compiler, glow_mlir.frontends.onnx.importer, glow_mlir.ir.universe
        import llvmlite.binding, onnx
    def load(): return InferenceSession(model)
values = dict(np.load(inputs))
begin = time.perf_counter()
session = load()
loaded = time.perf_counter()
session.run(None, values)
end = time.time()
time.sleep(float(rest))
status = dict(line.split(":") for line in open("/proc/self/status").read().splitlines())
held, peak = (int(status[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))
print(json.dumps({"load": loaded - begin, "end": end, "held": held, "peak": peak}))
"""
"""The process that is measured; its arguments are what to start, the model, its inputs, and how long it then waits."""

KINDS = ("cold", "imported", "stored", "onnxruntime")
"""What is started: the compiler, the compiler once it is imported, what the cache has, and the peer."""

COLUMNS = (
    *("model", "cold", "stored", "onnxruntime", "cold / onnxruntime", "compilation / session"),
    *("memory cold", "most", "stored", "onnxruntime"),
)

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glow-mlir" / "startup"
REST = 2.5
"""Seconds after which the cache trusts a new file, and memory is what it stays."""


def start(kind: str, model: Path, inputs: Path, cache: Path, rest: float = 0) -> Mapping[str, float]:
    """Start a process and return its figures; raises `NotAWorkload` where it fails."""
    command = [sys.executable, "-c", START, kind, str(model), str(inputs), str(rest)]
    environment = {**os.environ, "GLOW_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": str(FOLDER / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Installed packages have their bytecode beside them.
    begin = time.time()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise NotAWorkload(f"{'onnxruntime' if kind == 'onnxruntime' else 'glow-mlir'}: {reason}")
    found = json.loads(done.stdout)
    return {**found, "all": found["end"] - begin}


def medians(found: list[Mapping[str, float]]) -> Mapping[str, float]:
    """The median of each figure."""
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def measured(model: Path, inputs: Path, rounds: int) -> dict[str, Mapping[str, float]]:
    """The figures of all kinds of starts, in turns."""
    kinds: dict[str, list[Mapping[str, float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as kept:
        start("stored", model, inputs, Path(kept), REST)
        start("stored", model, inputs, Path(kept))
        for _ in range(rounds):
            for kind, found in kinds.items():
                with tempfile.TemporaryDirectory() as folder:
                    cache = Path(kept if kind == "stored" else folder)
                    found.append(start(kind, model, inputs, cache, 0 if kind == "imported" else REST))
    return {kind: medians(found) for kind, found in kinds.items()}


def row(workload: Workload, rounds: int) -> str:
    """The line of a model."""
    found = measured(workload.model, workload.inputs, rounds)
    cold, imported, stored, peer = (found[kind] for kind in KINDS)
    seconds = [f"{value['all']:.2f} s" for value in (cold, stored, peer)]
    quotients = [f"{cold['all'] / peer['all']:.1f}", f"{imported['load'] / peer['load']:.1f}"]
    sizes = [f"{value / 1e6:.0f} MB" for value in (cold["held"], cold["peak"], stored["held"], peer["held"])]
    return f"| {workload.name} | {' | '.join(seconds + quotients + sizes)} |"


def main() -> None:
    """Measure the models and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["resnet50"], help="names or ONNX files (resnet50)")
    parser.add_argument("--rounds", type=count, default=5, help="starts of each kind (5)")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("there is 1 round at least")
    try:
        names = names_of(options.models)
        print(f"{machine()}; medians of {options.rounds} starts\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for name in names:
            print(row(write_workload(name, FOLDER), options.rounds), flush=True)
    except NotAWorkload as error:
        sys.exit(f"startup.py: error: {error}")


if __name__ == "__main__":
    main()
