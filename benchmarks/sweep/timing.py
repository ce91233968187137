"""The measurement of one point: the engines in turns in one process, each through its kept binding."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from contest.machine import rest, stay_on
from glow_mlir.errors import GlowError
from sweep.engines import Call, OnnxRuntimeError, differences, onnxruntime_engine, our_engine
from sweep.points import Point
from sweep.torch_equivalents import results_of, torch_call

OURS, ONNXRUNTIME, TORCH = "glow_mlir", "onnxruntime", "torch"

MIN_NANOSECONDS = 400_000
"""How long the calls of an engine take in a round at least."""

DOUBTFUL = 1.05
"""A point above this is measured again, in more rounds."""

AGAIN = 3
"""How many times as many rounds then."""


@dataclass(frozen=True)
class Settings:
    """Rounds of a point, and the cores, one a thread."""

    rounds: int
    cores: list[int]


@dataclass
class Result:
    """
    The least times of a point, in microseconds, by engine.

    `refused` has our error, if there is one; `skipped` what kept a peer out; `differences` say where results differ.
    """

    name: str
    micros: dict[str, float] = field(default_factory=dict[str, float])
    refused: str = ""
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    differences: list[str] = field(default_factory=list[str])
    compile_seconds: float = 0.0

    def ratio(self) -> float | None:
        """Our time over the best peer's, or `None` where there is none."""
        peers = [micros for name, micros in self.micros.items() if name != OURS]
        return self.micros[OURS] / min(peers) if OURS in self.micros and peers else None

    def as_data(self) -> dict[str, Any]:
        """A row of a JSON file."""
        return asdict(self)


def measure(point: Point, settings: Settings) -> Result:
    """Prepare the engines of a point, compare their results, and time them."""
    stay_on(settings.cores)
    threads, result = len(settings.cores), Result(point.name)
    model, feeds = point.model(), point.feeds()
    calls: dict[str, Call] = {}
    try:
        theirs = onnxruntime_engine(model, feeds, threads)
    except OnnxRuntimeError as error:
        result.skipped[ONNXRUNTIME] = str(error)[:200]
        return result
    bound = theirs.is_bound()
    calls[ONNXRUNTIME] = theirs.call(bound)
    if (call := _torch(point, threads, theirs.results, result)) is not None:
        calls[TORCH] = call
    begin = time.perf_counter()
    try:
        ours = our_engine(model, feeds, threads)
    except GlowError as error:
        result.refused = str(error)[:300]
    except Exception as error:  # A point that breaks us is one that counts.
        result.refused = f"{type(error).__name__}: {str(error)[:300]}"
    else:
        result.compile_seconds = round(time.perf_counter() - begin, 3)
        result.differences = differences(point, ours.results, theirs.results)
        calls[OURS] = ours.call(bound and ours.is_bound())
    _time(calls, settings, result)
    return result


def _torch(point: Point, threads: int, expected: list[Any], result: Result) -> Call | None:
    """PyTorch's call, where it computes the same."""
    try:
        call = torch_call(point, threads)
        found = results_of(call()) if call else []
    except Exception as error:  # Whatever PyTorch cannot do leaves it out.
        result.skipped[TORCH] = f"{type(error).__name__}: {str(error)[:100]}"
        return None
    if call is None:
        return None
    if reasons := differences(point, found, expected[: len(found)]):
        result.skipped[TORCH] = f"computes something else: {reasons[0]}"
        return None
    return call


def _time(calls: Mapping[str, Call], settings: Settings, result: Result) -> None:
    """Rounds of turns; more of them where we seem slow."""
    alone = len(settings.cores) == 1
    clock = time.process_time_ns if alone else time.perf_counter_ns
    counts = {name: _count(call, clock) for name, call in calls.items()}
    for share in (1, AGAIN):
        _rounds(calls, counts, settings.rounds * share, clock, result, alone)
        if (ratio := result.ratio()) is None or ratio <= DOUBTFUL:
            return


def _rounds(
    calls: Mapping[str, Call],
    counts: Mapping[str, int],
    rounds: int,
    clock: Callable[[], int],
    result: Result,
    alone: bool,
) -> None:
    """Time all engines in turns; where they have threads, each begins when those of the others are at rest."""
    names = list(calls)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            call, count = calls[name], counts[name]
            if not alone:
                rest()
                for _ in range(count):
                    call()
            begin = clock()
            for _ in range(count):
                call()
            micros = (clock() - begin) / count / 1e3
            result.micros[name] = min(result.micros.get(name, np.inf), micros)


def _count(call: Call, clock: Callable[[], int]) -> int:
    """How many calls take long enough for the clock."""
    call()
    begin = clock()
    call()
    single = max(clock() - begin, 200)
    return max(1, min(2000, MIN_NANOSECONDS // single))
