"""Measure a server under load: rates, latencies, failures, and the CPU time of both sides."""

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
"""Connections that an event loop can wait for with `select`, whose limit is 1,024 files."""


class LoopTimers:
    """The timers of an event loop, with a more precise clock than some loops have."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.time = time.monotonic

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call a function at the given time, or soon if the time is past."""
        return self._loop.call_later(max(0.0, when - self.time()), callback)


@dataclass(frozen=True)
class LoadPlan:
    """A load: clients that wait for their answers, or requests that arrive at their due times."""

    clients: int
    """The number of connections; each has one request at a time."""
    budget: Budget
    think: float = 0.0
    """Seconds that a client pauses between an answer and its next request."""
    arrivals: Arrivals | None = None
    """Arrival times of requests that do not wait for answers."""
    warmup: float = 0.0
    """Seconds of unmeasured load before the measurement."""
    patience: float = 30.0
    """Timeout of an answer in seconds."""

    def load(self, connections: Sequence[Connection], budget: Budget, ended: Callable[[], None]) -> Load:
        """The load through some connections in the running event loop."""
        timers = LoopTimers(asyncio.get_running_loop())
        if self.arrivals is None:
            return ClosedLoad(timers, connections, budget, self.patience, ended, self.think)
        return OpenLoad(timers, connections, budget, self.patience, ended, self.arrivals)


@dataclass(frozen=True)
class LoadResult:
    """
    The measurements; times are in seconds, CPU times per request, answered or failed.

    `latency` is of answered requests. `client_share` is the share of a core that the load generator used: near 1, the
    load generator itself limits the results. `lateness` is how late requests of an open loop were noticed.
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
    """`None` if no process was given."""

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

    The cheapest loop, like most ways to wait for connections, has a resolution of milliseconds. Timed requests would be
    late by as much as many servers need for an answer, so they use a more precise loop.
    """
    if is_timed and connections <= MAX_SELECTED:
        return asyncio.SelectorEventLoop(selectors.SelectSelector())
    try:
        return import_module("uvloop").new_event_loop()
    except ImportError:
        return asyncio.new_event_loop()


async def measured(target: Target, request: bytes, plan: LoadPlan, pids: Sequence[int] = ()) -> LoadResult:
    """
    Put a load on a server; its CPU time is that of the processes `pids` and their children.

    Each connection has answered a request before the load starts. Raises `GlowError` if the first request fails.
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
    """Run a load; return its record."""
    is_over = asyncio.Event()
    load = load_of(is_over.set)
    load.start()
    await is_over.wait()
    return load.record


def _result(record: Record, own: float, server: float | None) -> LoadResult:
    """The result of a record; `own` and `server` are the CPU seconds of both sides."""
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
