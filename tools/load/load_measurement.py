"""What a server does under a load: rates, latencies, failures, and the CPU time of both sides."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np

from glow_mlir.simulation.result import Times
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.load.load_driver import Arrivals, Budget, ClosedLoad, FailureCount, Load, OpenLoad, Record
from glow_mlir.tools.load.load_target import Connection, Target
from glow_mlir.tools.reports.process_times import cpu_seconds, spent

MAX_SELECTED = 900
"""Connections up to which an event loop can wait by `select`, whose limit is 1,024 files."""


class LoopTimers:
    """The timers of an event loop, with a clock that counts more than the milliseconds of some."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.time = time.monotonic

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call something at a time, or soon where that is past."""
        return self._loop.call_later(max(0.0, when - self.time()), callback)


@dataclass(frozen=True)
class LoadPlan:
    """A load: so many clients that wait for their answers, or requests that come when they are due."""

    clients: int
    """Connections, of which each has one request under way."""
    budget: Budget
    think: float = 0.0
    """Seconds of a client between an answer and its next request."""
    arrivals: Arrivals | None = None
    """When requests come that wait for no answer."""
    warmup: float = 0.0
    """Seconds of the same load before that are not measured."""
    patience: float = 30.0
    """Seconds that an answer may take."""

    def load(self, connections: Sequence[Connection], budget: Budget, ended: Callable[[], None]) -> Load:
        """The load through some connections, in the event loop that runs."""
        timers = LoopTimers(asyncio.get_running_loop())
        if self.arrivals is None:
            return ClosedLoad(timers, connections, budget, self.patience, ended, self.think)
        return OpenLoad(timers, connections, budget, self.patience, ended, self.arrivals)


@dataclass(frozen=True)
class LoadResult:
    """
    What was measured; times are in seconds, CPU times those of one request, answered or failed.

    `latency` is of requests with an answer. `client_share` is how much of a core the load generator took: near 1, the
    figures are its own and not the server's. `lateness` is how late requests of an open loop were noticed.
    """

    seconds: float
    answered: int
    failures: dict[str, FailureCount]
    latency: Times
    largest: float
    lateness: Times
    client_cpu: float
    client_share: float
    server_cpu: float | None
    """`None` where no process was named."""

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return self.answered / self.seconds

    @property
    def failed(self) -> int:
        """Requests without an answer."""
        return sum(found.number for found in self.failures.values())


def new_loop(*, is_timed: bool, connections: int) -> asyncio.AbstractEventLoop:
    """
    An event loop for a load.

    The cheapest one knows milliseconds alone, and so do most ways to wait for connections: where requests have times of
    their own, they would be late by as much as many servers take.
    """
    if is_timed and connections <= MAX_SELECTED:
        return asyncio.SelectorEventLoop(selectors.SelectSelector())
    try:
        return import_module("uvloop").new_event_loop()
    except ImportError:
        return asyncio.new_event_loop()


async def measured(target: Target, request: bytes, plan: LoadPlan, pids: Sequence[int] = ()) -> LoadResult:
    """
    Put a load on a server, whose CPU time is that of some processes and all that they started.

    Each connection has an answer before the load begins. Raises `GlowError` where the first has none.
    """
    connections = [target.connection(request) for _ in range(plan.clients)]
    try:
        first = await _record(lambda ended: _greeting(plan, connections, ended))
        for status, found in first.failures.items():
            raise target.error(found.as_failure(status))
        if plan.warmup:
            await _record(lambda ended: plan.load(connections, Budget(seconds=plan.warmup), ended))
        before, own = cpu_seconds(pids) if pids else {}, time.process_time()
        record = await _record(lambda ended: plan.load(connections, plan.budget, ended))
        own = time.process_time() - own
        server = spent(before, cpu_seconds(pids)) if pids else None
    finally:
        for connection in connections:
            await connection.close()
    return _result(record, own, server)


def _greeting(plan: LoadPlan, connections: Sequence[Connection], ended: Callable[[], None]) -> Load:
    """A request through each connection."""
    budget = Budget(requests=len(connections))
    return ClosedLoad(LoopTimers(asyncio.get_running_loop()), connections, budget, plan.patience, ended)


async def _record(load_of: Callable[[Callable[[], None]], Load]) -> Record:
    """What became of a load, when it has ended."""
    is_over = asyncio.Event()
    load = load_of(is_over.set)
    load.start()
    await is_over.wait()
    return load.record


def _result(record: Record, own: float, server: float | None) -> LoadResult:
    """What a record says; `own` and `server` are CPU seconds of both sides."""
    latencies = np.array(record.latencies)
    seconds = max(record.end - record.begin, 1e-9)
    requests = max(len(latencies) + record.failed, 1)
    return LoadResult(
        seconds=seconds,
        answered=len(latencies),
        failures=record.failures,
        latency=Times.of(latencies),
        largest=float(latencies.max()) if latencies.size else 0.0,
        lateness=Times.of(np.array(record.lateness)),
        client_cpu=own / requests,
        client_share=own / seconds,
        server_cpu=None if server is None else server / requests,
    )
