"""
What a model takes from nothing to its first result: seconds and memory, cold and from the cache, beside onnxruntime.

    python benchmarks/startup.py                     # ResNet-50
    python benchmarks/startup.py my_network.onnx mobilenet_v2 --rounds 7

Each start is a process of its own; the least of several rounds is printed. *Cold* compiles, with the imports apart;
*warm* loads what the cache has, and counts all of it. Memory is the largest resident set of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import machine
from contest.workloads import NotAWorkload, Workload, names_of, write_workload
from glow_mlir.tools.bounded_numbers import count

START = """
import json, sys, time
begin = time.perf_counter()
import numpy as np
kind, model, inputs = sys.argv[1:]
if kind == "onnxruntime":
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    def load(): return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
else:
    from glow_mlir import InferenceSession
    if kind == "cold":
        import glow_mlir.driver.compiler, glow_mlir.frontends.onnx.importer, glow_mlir.ir.universe
        import llvmlite.binding, onnx
    def load(): return InferenceSession(model)
values = dict(np.load(inputs))
imported = time.perf_counter()
session = load()
loaded = time.perf_counter()
session.run(None, values)
status = open("/proc/self/status").read().splitlines()
peak, = (int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
constants = 0 if kind == "onnxruntime" else session.machine_code.manifest.constants
end = time.perf_counter()
print(json.dumps({"load": loaded - imported, "all": end - begin, "peak": peak, "constants": constants}))
"""
"""The process that is measured; its arguments are what to start, the model and its inputs."""

COLUMNS = (
    *("model", "cold, without imports", "warm, with imports", "onnxruntime, with imports"),
    *("memory cold", "warm", "onnxruntime", "packed constants"),
)

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glow-mlir" / "startup"
REST = 2.5
"""Seconds after which the cache trusts a new file."""


def start(kind: str, model: Path, inputs: Path, cache: Path) -> Mapping[str, float]:
    """Start a process and return its figures; raises `NotAWorkload` where it fails."""
    command = [sys.executable, "-c", START, kind, str(model), str(inputs)]
    environment = {**os.environ, "GLOW_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        raise NotAWorkload(f"{'onnxruntime' if kind == 'onnxruntime' else 'glow-mlir'}: {reason}")
    return json.loads(done.stdout)


def least(found: list[Mapping[str, float]]) -> Mapping[str, float]:
    """The least of each figure."""
    return {name: min(one[name] for one in found) for name in found[0]}


def measured(model: Path, inputs: Path, rounds: int) -> dict[str, Mapping[str, float]]:
    """The figures of all kinds of starts, in turns."""
    kinds: dict[str, list[Mapping[str, float]]] = {"cold": [], "warm": [], "onnxruntime": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            kinds["cold"].append(start("cold", model, inputs, Path(folder)))
            time.sleep(REST)
            start("warm", model, inputs, Path(folder))
            kinds["warm"].append(start("warm", model, inputs, Path(folder)))
            kinds["onnxruntime"].append(start("onnxruntime", model, inputs, Path(folder)))
    return {kind: least(found) for kind, found in kinds.items()}


def row(workload: Workload, rounds: int) -> str:
    """The line of a model."""
    found = measured(workload.model, workload.inputs, rounds)
    cold, warm, peer = (found[kind] for kind in ("cold", "warm", "onnxruntime"))
    seconds = [f"{value:.2f} s" for value in (cold["load"], warm["all"], peer["all"])]
    sizes = [f"{value / 1e6:.0f} MB" for value in (cold["peak"], warm["peak"], peer["peak"], cold["constants"])]
    return f"| {workload.name} | {' | '.join(seconds + sizes)} |"


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
        print(f"{machine()}; the least of {options.rounds} starts\n")
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for name in names:
            print(row(write_workload(name, FOLDER), options.rounds), flush=True)
    except NotAWorkload as error:
        sys.exit(f"startup.py: error: {error}")


if __name__ == "__main__":
    main()
