"""
What two threads lose where one of their cores is slower: networks by glow_mlir and onnxruntime, in turns.

    python benchmarks/unequal_cores.py
    python benchmarks/unequal_cores.py resnet50 minilm --conditions quiet taken --rounds 40

Both engines run on two cores, under three conditions: `quiet`; `taken`, where a process on the second core computes for
30 % of each millisecond; `streamed`, where one on the second core reads memory without end. A turn of an engine is a
few calls. Engines alternate, and each begins when the threads of the others are at rest. Other processes disturb some
turns: the time of an engine is the median of a tenth of its turns, those in which its threads waited least for a core.
Ratios are our time over onnxruntime's, losses the time under a condition over the quiet one. `scaling` is our time on
one thread over that on two. `waited` is the share of time that threads waited for a core, ours and onnxruntime's: the
quiet one should be near zero.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
import onnx
import onnxruntime
from models import random_inputs

from contest.machine import add_core, cores_from, rest, stay_on
from contest.workloads import BUILT
from glow_mlir import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

NETWORKS = (
    *("resnet50", "densenet121", "mobilenet_v3", "mobilenet_v2", "minilm"),
    *("efficientnet_b0", "resnet18", "vit_small"),
)
"""The networks that are timed by default."""

TURN = 0.01
"""Seconds of calls in a turn at least: ten periods of the process that takes a part of each millisecond."""

TAKEN = """
import time
while True:
    begin = time.perf_counter()
    while time.perf_counter() < begin + 0.3e-3:
        pass
    time.sleep(max(0, begin + 1e-3 - time.perf_counter()))
"""
"""Takes 30 % of each millisecond."""

STREAMED = """
import numpy as np
numbers = np.ones(1 << 26, np.float32)
while True:
    numbers.sum()
"""
"""Reads 256 MiB again and again."""

CONDITIONS = {"quiet": "", "taken": TAKEN, "streamed": STREAMED}
"""Condition → the script of the process on the second core."""

Calls = dict[str, Callable[[], object]]


@contextmanager
def beside(script: str, core: int) -> Generator[None]:
    """A process that runs a script on a core, unless there is none."""
    if not script:
        yield
        return
    start = f"import os\nos.sched_setaffinity(0, [{core}])\n"
    process = subprocess.Popen([sys.executable, "-c", start + script])
    try:
        time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait()


def calls_of(name: str, threads: int) -> Calls:
    """The calls of the engines on a network: `ours` and `theirs` in threads, `alone` ours in one."""
    model: onnx.ModelProto = BUILT[name]()
    inputs = random_inputs(model, np.random.default_rng(0))
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    theirs = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    sessions = {
        "ours": InferenceSession(model, threads=threads),
        "theirs": theirs,
        "alone": InferenceSession(model),
    }
    return {name: lambda session=session: session.run(None, inputs) for name, session in sessions.items()}


def waited() -> float:
    """Seconds that the threads of this process have waited for a core so far; 0 where the system does not say."""
    total = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # A thread that just ended.
            total += int(task.read_text().split()[1])
    return total / 1e9


@dataclass(frozen=True)
class Time:
    """Milliseconds of a call, and the share of that for which threads waited for a core."""

    milliseconds: float
    waited: float


def times_of(calls: Calls, rounds: int) -> dict[str, Time]:
    """The times of engines, from turns in alternation."""
    counts: dict[str, int] = {}
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        call()
        counts[name] = max(1, round(TURN / (time.perf_counter() - begin)))
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    names = list(calls)
    for number in range(rounds):
        for name in names if number % 2 else reversed(names):
            rest()
            calls[name]()
            before, begin = waited(), time.perf_counter()
            for _ in range(counts[name]):
                calls[name]()
            seconds = time.perf_counter() - begin
            turns[name].append(((waited() - before) / seconds, seconds / counts[name] * 1e3))
    kept = max(1, rounds // 10)
    return {name: _middle(sorted(found)[:kept]) for name, found in turns.items()}


def _middle(turns: Sequence[tuple[float, float]]) -> Time:
    """The median time of turns, and the median share for which threads waited."""
    shares, times = zip(*turns, strict=True)
    return Time(median(times), median(shares))


def measure(name: str, conditions: Sequence[str], rounds: int, slowed: int) -> None:
    """Time a network under all conditions, and print a line for each."""
    calls = calls_of(name, 2)
    quiet: dict[str, Time] = {}
    for condition in conditions:
        with beside(CONDITIONS[condition], slowed):
            wanted = calls if condition == "quiet" else {one: calls[one] for one in ("ours", "theirs")}
            times = times_of(wanted, rounds)
        ours, theirs = times["ours"].milliseconds, times["theirs"].milliseconds
        line = f"{name:16} {condition:9} {ours:8.2f} {theirs:8.2f} ms, ratio {ours / theirs:.2f}"
        if condition == "quiet":
            quiet = times
            line += f", scaling {times['alone'].milliseconds / ours:.2f}"
        elif quiet:
            losses = ours / quiet["ours"].milliseconds, theirs / quiet["theirs"].milliseconds
            line += f", loss {losses[0]:.2f}, of onnxruntime {losses[1]:.2f}"
        print(f"{line}, waited {times['ours'].waited:.0%} {times['theirs'].waited:.0%}", flush=True)


def main() -> None:
    """Measure the networks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help="names of networks of the benchmark")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--rounds", type=count, default=60, help="turns of each engine (60)")
    add_core(parser, "the first core; the one after it is slowed")
    options = parser.parse_args()
    if unknown := [name for name in options.networks if name not in BUILT]:
        parser.error(f"{unknown[0]} is none of {', '.join(BUILT)}")
    cores = cores_from(options.core, 2)
    stay_on(cores)
    for name in options.networks:
        measure(name, options.conditions, options.rounds, cores[1])


if __name__ == "__main__":
    main()
