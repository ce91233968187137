"""
What a call costs, beside ONNX Runtime: plain `run`, and with inputs and outputs that are bound.

    python benchmarks/calls.py
    python benchmarks/calls.py model.onnx --bind N=1 --rounds 1000 --core 1

The kinds of calls take turns on one core, in rounds of some calls each; the least and the median round are printed, in
microseconds. A small model shows what comes to its own work.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import glow_mlir
from contest.machine import add_core, stay_on
from glow_mlir.tools.arguments.bounded_numbers import count

DIGITS = Path(__file__).parents[1] / "examples" / "digits.onnx"
CALLS = 30
"""Calls of a round."""

ENGINES = ("onnxruntime", "glow_mlir")


def size(text: str) -> tuple[str, int]:
    """A free dimension and its size, as `N=1`."""
    label, _, number = text.partition("=")
    return label, int(number)


def session_of(engine: Any, path: Path, sizes: list[tuple[str, int]]) -> Any:
    """A session of one thread."""
    options = engine.SessionOptions()
    options.intra_op_num_threads = 1
    for label, number in sizes:
        options.add_free_dimension_override_by_name(label, number)
    return engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def calls_of(session: Any, feeds: dict[str, np.ndarray]) -> dict[str, Callable[[], object]]:
    """The kinds of calls: plain, and on what is bound, whose memory lives as long."""
    binding, places = session.io_binding(), [np.array(array) for array in session.run(None, feeds)]
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for item, place in zip(session.get_outputs(), places, strict=True):
        binding.bind_output(item.name, "cpu", 0, place.dtype.type, list(place.shape), place.ctypes.data)
    kept = [places]
    return {"run": lambda: session.run(None, feeds), "bound": lambda: kept and session.run_with_iobinding(binding)}


def measured(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of a call in each round, by kind; the kinds take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            found[name].append((time.perf_counter_ns() - start) / CALLS / 1e3)
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=DIGITS, help="an ONNX model of floats")
    parser.add_argument("--bind", metavar="NAME=SIZE", type=size, action="append", help="for a model of yours")
    parser.add_argument("--rounds", type=count, default=300)
    add_core(parser)
    args = parser.parse_args()
    stay_on([args.core])
    sizes = args.bind or [("N", 1)] * (args.model == DIGITS)
    calls: dict[str, Callable[[], object]] = {}
    rng = np.random.default_rng(0)
    for engine in ENGINES:
        module: Any = glow_mlir if engine == "glow_mlir" else import_module(engine)
        session = session_of(module, args.model, sizes)
        feeds: dict[str, np.ndarray] = {item.name: rng.random(item.shape, np.float32) for item in session.get_inputs()}
        calls |= {f"{engine} {kind}": call for kind, call in calls_of(session, feeds).items()}
    for name, times in measured(calls, args.rounds).items():
        print(f"{name:18} least {min(times):7.2f} us   median {statistics.median(times):7.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
