"""
Steps of training by several processes beside those of one, of the same batch.

    python benchmarks/parallel_training.py
    python benchmarks/parallel_training.py --processes 4 --batch 256 --model my_network.onnx --rounds 9

Each process computes on one thread. One and several take turns, so that what else the machine does concerns both; the
fastest step of each counts, and each ratio is that of neighbours. Seconds of a core, which others do not lengthen by
waiting, say what a quiet machine would give: those of a step of one process, over the largest of any of several.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from glow_mlir import TrainingSession
from glow_mlir.tools.arguments.bounded_numbers import count
from glow_mlir.training import SGD

MODEL = Path(__file__).parents[1] / "examples" / "residual_digits.onnx"
_TICK = os.sysconf("SC_CLK_TCK")


def core_seconds(pid: int) -> float:
    """Seconds that a process has had a core, with all its threads (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def batch_of(session: TrainingSession, classes: int) -> dict[str, np.ndarray]:
    """Random numbers for a step."""
    generator = np.random.default_rng(0)
    return {
        item.name: generator.integers(0, classes, item.numbers).astype(item.numpy_dtype)
        if item.name == "targets"
        else generator.random(item.numbers).astype(item.numpy_dtype)
        for item in session.inputs
    }


class Side:
    """A session, and what its steps took."""

    def __init__(self, session: TrainingSession, steps: int) -> None:
        self.session, self.steps = session, steps
        self.batch = batch_of(session, session.outputs[0].numbers[-1])
        self.times: list[float] = []
        self.cores: list[list[float]] = []

    def round(self) -> float:
        """Some steps; the seconds of one."""
        processes = (os.getpid(), *self.session.process_ids)
        before, begin = [core_seconds(pid) for pid in processes], time.perf_counter()
        for _ in range(self.steps):
            self.session.step(self.batch)
        seconds = (time.perf_counter() - begin) / self.steps
        self.cores.append([(core_seconds(pid) - had) / self.steps for pid, had in zip(processes, before, strict=True)])
        self.times.append(seconds)
        return seconds

    @property
    def of_core(self) -> float:
        """Seconds of a core that a step takes of the process that takes most."""
        return max(statistics.median(rounds) for rounds in zip(*self.cores, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print steps a second of one process and of several, and their ratio."""
    parser = argparse.ArgumentParser(description="Measure training by several processes.")
    parser.add_argument("--model", type=Path, default=MODEL, help="its only free dimension is the batch, N")
    parser.add_argument("--processes", type=count, default=2)
    parser.add_argument("--batch", type=count, default=64, help="samples of a step, of all processes together")
    parser.add_argument("--rounds", type=count, default=7)
    parser.add_argument("--steps", type=count, default=10, help="of a round")
    args = parser.parse_args(arguments)

    def session(processes: int) -> TrainingSession:
        dimensions = {"N": args.batch // processes}
        return TrainingSession(args.model, optimizer=SGD(1e-3), dimensions=dimensions, processes=processes, threads=1)

    one = Side(session(1), args.steps)
    with closing(session(args.processes)) as team:
        several = Side(team, args.steps)
        sides = (one, several)
        for side in sides:
            side.session.step(side.batch)
        ratios = [one.round() / several.round() for _ in range(args.rounds)]
    print(f"{args.model.name}, batches of {args.batch}, one thread a process, {len(os.sched_getaffinity(0))} cores")
    for name, side in (("one process", one), (f"{args.processes} processes", several)):
        print(f"{name:14}{1 / min(side.times):8.2f} steps/s, {1000 * side.of_core:8.1f} ms of a core a step")
    first, _, third = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    print(f"{min(one.times) / min(several.times):.2f} times the steps (quartiles {first:.2f} to {third:.2f})")
    print(f"{one.of_core / several.of_core:.2f} times by seconds of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
