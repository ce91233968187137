"""
Seeds in child processes: what a fuzzer needs whose cases may crash, hang or eat memory.

A child lives for many seeds; one that dies or takes too long is a failure of the seed that it was at, and is replaced.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import cast

SECONDS = 10.0
"""How long a case may take."""

MEMORY = 4 << 30
"""Bytes of address space that a child may take beyond what it starts with."""

SEEDS_A_CHILD = 500
"""After how many seeds a child is replaced, so that what cases leave behind does not add up."""

_FORK = get_context("fork")


@dataclass(frozen=True)
class Fuzzer:
    """Cases by seed: `run` raises where one fails."""

    run: Callable[[int], object]
    prepare: Callable[[], object] = lambda: None
    """Called once, before there are children: what it keeps is theirs as well."""
    show: Callable[[int], str] = lambda seed: ""
    """What a seed stands for, as text."""
    seconds: float | None = None
    """How long a case may take, if not `SECONDS`."""
    memory: int | None = None
    """Bytes of address space that a child may take beyond what it starts with, if not `MEMORY`."""


@dataclass(frozen=True)
class Failure:
    """A seed that failed: the class of the exception, the signal, or that it took too long; and in one line why."""

    seed: int
    kind: str
    reason: str


Progress = Callable[[int, int], None]
"""Is told how many seeds are done, and how many of them failed."""


def fuzz(
    fuzzer: Fuzzer, seeds: Iterable[int], workers: int, progress: Progress = lambda done, failed: None
) -> list[Failure]:
    """Run the cases of all seeds on that many child processes; those that fail, in the order of their seeds."""
    fuzzer.prepare()
    waiting = deque(seeds)
    children = [_Child(fuzzer) for _ in range(min(workers, len(waiting)))]
    done, failures = 0, list[Failure]()
    try:
        for child in children:
            child.give(waiting.popleft())
        while any(child.seed is not None for child in children):
            for child in _answering(children):
                done += 1
                failures += child.outcome()
                if waiting:
                    child.give(waiting.popleft())
            progress(done, len(failures))
    finally:
        for child in children:
            child.end()
    return sorted(failures, key=lambda failure: failure.seed)


@dataclass
class _Child:
    """A process that runs cases, one at a time."""

    fuzzer: Fuzzer
    seed: int | None = None
    deadline: float = 0.0
    used: int = 0
    process: ForkProcess | None = None
    pipe: Connection = field(init=False)

    def give(self, seed: int) -> None:
        """Start with a seed, in a new process where there is none, or where there were many."""
        if self.used >= SEEDS_A_CHILD:
            self.end()
        if self.process is None:
            self.pipe, end = cast("tuple[Connection, Connection]", Pipe())
            self.process = _FORK.Process(target=_serve, args=(end, self.fuzzer), daemon=True)
            self.process.start()
            end.close()
            self.used = 0
        self.seed, self.used, self.deadline = seed, self.used + 1, time.monotonic() + self.seconds
        self.pipe.send(seed)

    @property
    def seconds(self) -> float:
        """How long a case may take."""
        return SECONDS if self.fuzzer.seconds is None else self.fuzzer.seconds

    def outcome(self) -> list[Failure]:
        """The failure of the seed, if it failed, once the child has answered, died, or taken too long."""
        seed, self.seed = self.seed, None
        assert seed is not None
        assert self.process is not None
        if not self.pipe.poll():
            self.end()
            return [Failure(seed, "hang", f"it takes more than {self.seconds:g} seconds")]
        try:
            answer = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode or 0
            self.end()
            return [Failure(seed, signal.Signals(-code).name if code < 0 else "exit", f"the process ended with {code}")]
        return [] if answer is None else [Failure(seed, *answer)]

    def end(self) -> None:
        """Stop the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _answering(children: list[_Child]) -> Iterator[_Child]:
    """The children that are at a seed and have answered, died, or taken too long; waits until there is one."""
    busy = {child.pipe: child for child in children if child.seed is not None}
    first = min(child.deadline for child in busy.values())
    ready = wait(list(busy), max(0.0, first - time.monotonic()))
    late = [child for pipe, child in busy.items() if pipe not in ready and child.deadline <= time.monotonic()]
    yield from (busy[pipe] for pipe in busy if pipe in ready)
    yield from late


def _serve(pipe: Connection, fuzzer: Fuzzer) -> None:
    """What a child does: run the case of each seed that comes, and answer with what it raised."""
    with open("/proc/self/statm", encoding="ascii") as sizes:
        taken = int(sizes.read().split()[0]) * resource.getpagesize()
    most = taken + (MEMORY if fuzzer.memory is None else fuzzer.memory)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())
    os.dup2(quiet, sys.stderr.fileno())
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        try:
            fuzzer.run(seed)
            answer = None
        except Exception as error:
            answer = (type(error).__name__, f"{_place(error)}: {' '.join(str(error).split())[:300]}")
        pipe.send(answer)


def _place(error: Exception) -> str:
    """Where an exception was raised, as `file.py:12`."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
