"""
Branches and loops: an LSTM written as Scan and as Loop beside the operator, Mandelbrot's set, and greedy decoding.

    python benchmarks/control_flow.py
    python benchmarks/control_flow.py --rounds 50 --only lstm

Each model is measured in turns with ONNX Runtime, in one process and on one core; all forms of the LSTM take turns with
each other. Results are compared before anything is measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from control_flow_models import LSTM_BODIES, greedy_decoder, lstm, mandelbrot

from contest.machine import add_core, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """A model, its inputs, and the seconds of all calls by us and by ONNX Runtime."""

    name: str
    model: onnx.ModelProto
    inputs: Arrays
    ours: list[float] = field(default_factory=list[float])
    theirs: list[float] = field(default_factory=list[float])

    def row(self, reference: Case) -> str:
        """The case as a line of the table, beside the first of its group."""
        times = [f"{1e3 * of(seconds):.3f}" for seconds in (self.ours, self.theirs) for of in (min, median)]
        ratio, slower = min(self.theirs) / min(self.ours), min(self.ours) / min(reference.ours)
        return f"| {self.name} | {' | '.join(times)} | {ratio:.2f} | {slower:.2f} |"


def groups() -> list[list[Case]]:
    """The cases, those together that are compared with each other; the first is what the others are compared with."""
    rng = np.random.default_rng(0)
    found: list[list[Case]] = []
    for steps, batch, width in ((64, 1, 256), (128, 8, 64)):
        x = rng.normal(size=(steps, batch, width)).astype(np.float32)
        sizes = f"{steps} steps, batch {batch}, {width} wide"
        found.append(
            [Case(f"{form}, {sizes}", lstm(form, steps, batch, width, width), {"x": x}) for form in LSTM_BODIES]
        )
    found += [
        [Case(f"mandelbrot {side}x{side}, {trips} trips", mandelbrot(side, trips), {"n": np.array(trips)})]
        for side, trips in ((128, 50), (512, 50))
    ]
    first = {"first": np.array([7])}
    return [*found, [Case("greedy decoding, up to 32 tokens", greedy_decoder(32, 5000, 256), first)]]


def sessions(case: Case) -> list[tuple[list[float], Callable[[], Sequence[Any]]]]:
    """The calls of a case by us and by ONNX Runtime, each with where its seconds belong; both give the same."""
    content = case.model.SerializeToString()
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    ours = InferenceSession(content, cache=False)
    theirs = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    for found, wanted in zip(ours.run(None, case.inputs), theirs.run(None, case.inputs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    return [
        (case.ours, lambda: ours.run(None, case.inputs)),
        (case.theirs, lambda: theirs.run(None, case.inputs)),
    ]


def measure(cases: Sequence[Case], rounds: int) -> None:
    """Call all cases in turns."""
    calls = [pair for case in cases for pair in sessions(case)]
    for _ in range(rounds):
        for seconds, call in calls:
            begin = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - begin)


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=count, default=30, help="calls of each (30)")
    add_core(parser)
    parser.add_argument("--only", default="", help="groups to measure, those where a name has this")
    options = parser.parse_args()
    stay_on([options.core])
    chosen = [group for group in groups() if any(options.only in case.name for case in group)]
    print(f"{machine()}, {options.rounds} rounds\n")
    print("| model | glow-mlir ms, least | median | ONNX Runtime ms, least | median | ratio | of the first |")
    print("|---|---|---|---|---|---|---|")
    for group in chosen:
        measure(group, options.rounds)
        for case in group:
            print(case.row(group[0]), flush=True)


if __name__ == "__main__":
    main()
