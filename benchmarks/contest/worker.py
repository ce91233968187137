"""
The process of one engine: loads a model, then answers requests on standard input with lines of JSON.

Run as `python -m contest.worker JOB`, by the Python of the engine. Requests are `time N` (seconds of N calls, where
there are several after an uncounted one), `outputs FILE` (writes an `.npz` file) and `memory`. Whatever an engine
prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from contest.job import Job, Runner
from contest.machine import stay_on

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def take_standard_output() -> TextIO:
    """A stream to the old standard output; from here on, what is printed goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return stream


def peak_memory() -> int:
    """The largest resident size of this process since the last `forget_peak`, in bytes; 0 where it is unknown."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def children_peak() -> int:
    """The largest resident size of any process that this one has started and that has ended, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


def forget_peak() -> None:
    """Let `peak_memory` start anew, where the kernel allows it."""
    try:
        CLEAR.write_text("5")
    except OSError as error:
        print(f"the peak of memory stays that of loading: {error}", file=sys.stderr)


def start(job: Job) -> tuple[Runner, dict[str, Any]]:
    """Convert and load the model and call it once; return it with the seconds and bytes that took."""
    module: Any = import_module(f"contest.runners.{job.engine}")
    with np.load(job.inputs) as stored:
        inputs = {name: np.ascontiguousarray(stored[name]) for name in stored.files}
    begin = time.perf_counter()
    if hasattr(module, "prepare"):
        module.prepare(job)
    prepared, converters = time.perf_counter(), children_peak()
    runner: Runner = module.load(job, inputs)
    runner.call()
    loaded = time.perf_counter()
    # A compiler that is a program of its own counts; it shows where it takes more than the converter before it did.
    compiler = children_peak()
    peak = max(peak_memory(), compiler if compiler > converters else 0)
    facts = {"prepare_seconds": prepared - begin, "load_seconds": loaded - prepared, "load_bytes": peak}
    forget_peak()
    return runner, facts


def seconds_of(runner: Runner, calls: int) -> dict[str, Any]:
    """Seconds of each of that many calls, after one that brings caches and threads back; a long single one does so."""
    if calls > 1:
        runner.call()
    seconds: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter()
        runner.call()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds}


def write_outputs(runner: Runner, path: str) -> dict[str, Any]:
    """Write the outputs of a call to an `.npz` file, as `0`, `1`, …"""
    runner.call()
    arrays = {str(index): np.asarray(output) for index, output in enumerate(runner.outputs())}
    np.savez(path, allow_pickle=False, **arrays)
    return {}


ANSWERS: dict[str, Callable[[Runner, str], dict[str, Any]]] = {
    "time": lambda runner, calls: seconds_of(runner, int(calls)),
    "outputs": write_outputs,
    "memory": lambda runner, _: {"run_bytes": peak_memory()},
}
"""Request → what answers it."""


def main() -> None:
    """Load the model of the job, then answer until standard input ends."""
    stream = take_standard_output()
    job = Job.from_json(sys.argv[1])
    stay_on(job.cores)
    try:
        runner, facts = start(job)
        print(json.dumps(facts), file=stream)
        for line in sys.stdin:
            request, _, argument = line.strip().partition(" ")
            print(json.dumps(ANSWERS[request](runner, argument)), file=stream)
    except Exception as error:  # Whatever an engine raises is the reason that the report names.
        traceback.print_exc()
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=stream)
    stream.flush()
    os._exit(0)  # Engines that crash when Python takes them apart have answered all there was to answer.


if __name__ == "__main__":
    main()
