"""
Time of whole models against onnxruntime: in turns in one run, one thread, a fresh input each time, outputs checked.

    python benchmarks/against_onnxruntime.py resnet50 mobilenet_v2 --rounds 15 --json result.json

Each round times both, one right after the other, on one core. Ratios are ours over theirs: below 1 is faster. Models
are those of `tests/support/models.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import BUILT, LIGHT, model_named, random_inputs

from contest.machine import stay_on
from glow_mlir import InferenceSession

WARM_START = """
import sys, time
start = time.perf_counter()
import numpy as np
from glow_mlir import InferenceSession
session = InferenceSession(sys.argv[1])
arg = session.get_inputs()
session.run(None, {a.name: np.zeros(a.shape, {"float": "f4", "int64": "i8"}[a.type[7:-1]]) for a in arg})
print(time.perf_counter() - start)
"""


@dataclass
class Result:
    """Figures of one model; times in milliseconds unless named otherwise."""

    model: str
    ours_min: float
    ours_median: float
    theirs_min: float
    theirs_median: float
    ratio_min: float
    ratio_median: float
    difference: float
    """Largest difference, in units of the outputs' largest magnitude."""
    cold_seconds: float
    """From the model in memory to the first session, without imports."""
    warm_seconds: float
    """From a new Python to the first outputs, imports included, with a cached artifact."""
    arena_bytes: int
    arena_lower_bound: int


def onnxruntime_session(model: onnx.ModelProto) -> Any:
    """A session of onnxruntime on one thread."""
    # Any: onnxruntime has no annotations for its options.
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def timed(run: Callable[..., list[np.ndarray]], inputs: dict[str, np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """Milliseconds and outputs of one run."""
    start = time.perf_counter()
    outputs = run(None, inputs)
    return (time.perf_counter() - start) * 1e3, outputs


def warm_start(model: onnx.ModelProto) -> float:
    """Seconds of the second start of a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        environment = {**os.environ, "GLOW_CACHE_DIR": str(Path(folder) / "cache")}
        command = [sys.executable, "-c", WARM_START, str(path)]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(3)]
        return min(float(run.stdout) for run in runs[1:])


def measure(name: str, rounds: int) -> Result:
    """Measure one model."""
    model = model_named(name)
    start = time.perf_counter()
    ours = InferenceSession(model, cache=False)
    cold = time.perf_counter() - start
    theirs = onnxruntime_session(model)
    rng = np.random.default_rng(0)
    times: list[tuple[float, float]] = []
    difference = 0.0
    for round_ in range(rounds + 1):
        inputs = random_inputs(model, rng)
        ours_time, results = timed(ours.run, inputs)
        theirs_time, expected = timed(theirs.run, inputs)
        for result, reference in zip(results, expected, strict=True):
            scale = float(np.abs(reference).max())
            difference = max(difference, float(np.abs(result - reference).max()) / scale)
        if round_:
            times.append((ours_time, theirs_time))
    mine, other = np.array(times).T
    manifest = ours.executable.manifest
    return Result(
        name,
        *(float(value) for value in (mine.min(), np.median(mine), other.min(), np.median(other))),
        ratio_min=float(mine.min() / other.min()),
        ratio_median=float(np.median(mine / other)),
        difference=difference,
        cold_seconds=cold,
        warm_seconds=warm_start(model),
        arena_bytes=manifest.activations,
        arena_lower_bound=manifest.activations_bound,
    )


HEADER = (
    "| model | ours min / med ms | onnxruntime min / med ms | ratio min / med | difference | cold s | warm s | arena |"
)


def row(result: Result) -> str:
    """One line of the table."""
    r = result
    return (
        f"| {r.model} | {r.ours_min:.2f} / {r.ours_median:.2f} | {r.theirs_min:.2f} / {r.theirs_median:.2f} "
        f"| {r.ratio_min:.2f} / {r.ratio_median:.2f} | {r.difference:.1e} | {r.cold_seconds:.2f} "
        f"| {r.warm_seconds:.2f} | {r.arena_bytes / r.arena_lower_bound:.3f} |"
    )


def main() -> None:
    """Measure the models named on the command line, by default all."""
    parser = argparse.ArgumentParser(description="Time of whole models against onnxruntime, one thread, in turns.")
    parser.add_argument("models", nargs="*", default=[*LIGHT, *BUILT], help="names of models")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--core", type=int, default=1, help="the core to run on")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    stay_on([arguments.core % (os.cpu_count() or 1)])
    print(f"{HEADER}\n|{' --- |' * HEADER.count(' | ')} --- |")
    results: list[Result] = []
    for name in arguments.models:
        results.append(measure(name, arguments.rounds))
        print(row(results[-1]), flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


if __name__ == "__main__":
    main()
