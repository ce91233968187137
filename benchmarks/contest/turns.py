"""The measurement of one model: all engines loaded at once, and timed in turns."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contest.client import Worker, WorkerFailure
from contest.engines import ENGINES, REFERENCES, TFLITE_FILE
from contest.figures import calls_within, difference
from contest.job import Job
from contest.probe import Probe
from contest.quantized import QUANTIZED
from contest.workloads import Workload

DISTURBED = 0.1
"""A round in which a probe falls short of the best by more than this share is measured again."""

SLOW = 10
"""An engine that takes as many times as long as the fastest is timed in few rounds."""

FEW_ROUNDS = 3

WRONG = 0.05
"""An engine whose outputs differ by more than this, in units of their scale, computes something else."""

WRONG_CODES = 0.6
"""The same for networks of 8-bit codes with random weights, which engines round in different places."""


@dataclass(frozen=True)
class Settings:
    """How to measure: rounds, cores (one a thread), seconds of calls a round, seconds to wait, and where files go."""

    rounds: int
    cores: list[int]
    budget: float
    timeout: float
    folder: Path


@dataclass
class Result:
    """
    What one engine did with one model.

    `seconds` has the shortest call of each round, of the first ones where the engine is slow. `difference` is the
    largest of the outputs to the reference's, in units of their scale. `reason` says why there are no times.
    """

    reason: str = ""
    seconds: list[float] = field(default_factory=list[float])
    difference: float | None = None
    prepare_seconds: float = 0.0
    load_seconds: float = 0.0
    load_bytes: int = 0
    run_bytes: int = 0


@dataclass
class Measurement:
    """All engines on one model; `probes` has the worst probe of each round, in operations a second, `peak` the best."""

    workload: str
    flops: int | None
    threads: int
    peak: float = 0.0
    probes: list[float] = field(default_factory=list[float])
    repeated: int = 0
    """Rounds that were measured again because the machine was disturbed."""
    results: dict[str, Result] = field(default_factory=dict[str, Result])

    def timed(self) -> dict[str, Result]:
        """The results that have times."""
        return {name: result for name, result in self.results.items() if result.seconds}


class Turns:
    """The engines of one measurement while it goes on."""

    def __init__(self, workload: Workload, settings: Settings, probe: Probe) -> None:
        self._workload = workload
        self._settings = settings
        self._probe = probe
        self._workers: dict[str, Worker] = {}
        self._calls: dict[str, int] = {}
        self.measurement = Measurement(workload.name, workload.flops, len(settings.cores))

    def run(self, pythons: Mapping[str, Path | str]) -> Measurement:
        """
        Load the engines that take the model (name → its Python, or the reason why there is none), measure, and end
        them.
        """
        try:
            for name, python in pythons.items():
                if self._workload.model.suffix in ENGINES[name].models:
                    self._load(name, python)
            self._compare()
            self._rounds()
            self._close()
        finally:
            for worker in self._workers.values():
                worker.stop()
        return self.measurement

    def _say(self, text: str) -> None:
        print(f"{self._workload.name}, {len(self._settings.cores)} thread(s): {text}", file=sys.stderr, flush=True)

    def _fail(self, name: str, reason: object) -> None:
        """Leave an engine out from here on."""
        self._say(f"{name} is out: {reason}")
        if (worker := self._workers.pop(name, None)) is not None:
            worker.stop()
        result = self.measurement.results[name]
        result.reason, result.seconds = str(reason), []

    def _load(self, name: str, python: Path | str) -> None:
        result = self.measurement.results[name] = Result()
        if isinstance(python, str):
            self._fail(name, python)
            return
        self._say(f"loading {name}")
        home = self._workload.model.parent
        cores = self._settings.cores
        version = "-".join(package.partition("==")[2] for package in ENGINES[name].packages[:1])
        job = Job(
            engine=name,
            model=str(self._workload.model),
            inputs=str(self._workload.inputs),
            outputs=self._workload.outputs,
            folder=str(home / f"{name}-{version}" if version else home / name),
            threads=len(cores),
            cores=cores,
        )
        logs = self._settings.folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        log = logs / f"{self._workload.name}-{name}-{len(cores)}.txt"
        try:
            worker = self._workers[name] = Worker(job, python, log, self._settings.timeout)
            self._calls[name] = calls_within(self._settings.budget, min(worker.seconds(1)))
        except WorkerFailure as failure:
            self._fail(name, failure)
            return
        for fact, value in worker.facts.items():
            setattr(result, fact, value)

    def _compare(self) -> None:
        """Compare the outputs with the reference's, or with none where it does not run."""
        kind = self._workload.model.suffix
        if (reference := REFERENCES[kind]) not in self._workers:
            self._say(f"{reference} does not run: outputs are not compared")
            return
        wanted = self._workers[reference].outputs()
        has_codes = self.measurement.workload in QUANTIZED or kind == TFLITE_FILE
        for name in list(self._workers):
            try:
                gap = difference(self._workers[name].outputs(), wanted)
            except (WorkerFailure, ValueError) as failure:
                self._fail(name, failure)
                continue
            self.measurement.results[name].difference = gap if np.isfinite(gap) else None
            if not gap <= (WRONG_CODES if has_codes else WRONG):
                self._fail(name, f"computes something else: outputs differ by {gap:.1e} of their scale")

    def _rounds(self) -> None:
        """Measure the rounds; as many again, at most, where the machine is disturbed."""
        measured = self.measurement
        spare = self._settings.rounds
        while self._workers and len(measured.probes) < self._settings.rounds:
            number = len(measured.probes)
            times, worst = self._round(number)
            disturbed = worst < (1 - DISTURBED) * self._probe.best
            self._say(f"round {number + 1} of {self._settings.rounds}{', disturbed' if disturbed else ''}")
            if disturbed and spare:
                spare -= 1
                measured.repeated += 1
                continue
            measured.probes.append(worst)
            for name, seconds in times.items():
                if name in self._workers:
                    measured.results[name].seconds.append(seconds)
        measured.peak = self._probe.best

    def _round(self, number: int) -> tuple[dict[str, float], float]:
        """The shortest call of each engine, and the worst of the probes between them."""
        names = [name for name in self._workers if not self._rests(name)]
        turn = number % len(names)
        probes = [self._probe.measure()]
        times: dict[str, float] = {}
        # Everybody follows everybody else in some round.
        for name in names[turn:] + names[:turn]:
            try:
                times[name] = min(self._workers[name].seconds(self._calls[name]))
            except WorkerFailure as failure:
                self._fail(name, failure)
            probes.append(self._probe.measure())
        return times, min(probes)

    def _rests(self, name: str) -> bool:
        """Whether an engine is slow, and was timed in enough rounds."""
        times = {name: result.seconds[:FEW_ROUNDS] for name, result in self.measurement.timed().items()}
        mine = times.get(name, [])
        return len(mine) == FEW_ROUNDS and min(mine) > SLOW * min(min(seconds) for seconds in times.values())

    def _close(self) -> None:
        for name in list(self._workers):
            try:
                self.measurement.results[name].run_bytes = self._workers[name].run_bytes()
            except WorkerFailure as failure:
                self._fail(name, failure)
