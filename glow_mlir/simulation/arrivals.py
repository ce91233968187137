"""Arrival processes and kinds of requests."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

RETRY = 1e-3
"""Seconds after which a refused client retries."""


@dataclass(frozen=True)
class ClosedLoop:
    """
    Clients that wait for each answer, think for some seconds, and send the next request.

    A refused client waits for `retry` additional seconds; a client whose request expired is notified at its deadline.
    """

    clients: int
    think: float = 0.0
    retry: float = RETRY


@dataclass(frozen=True)
class Poisson:
    """Independent requests with a mean rate per second."""

    rate: float


@dataclass(frozen=True)
class FixedRate:
    """A request every `1 / rate` seconds, the first at 0."""

    rate: float


@dataclass(frozen=True)
class Trace:
    """Requests at given seconds, which do not decrease."""

    times: tuple[float, ...]


Arrivals = ClosedLoop | Poisson | FixedRate | Trace


@dataclass(frozen=True)
class Kind:
    """
    A kind of requests: its weight relative to other kinds, its rows, priority and deadline.

    The number of rows is drawn uniformly from `sizes`. Lower `priority` numbers come first. A request that has waited
    for `deadline` seconds expires.
    """

    name: str = "request"
    weight: float = 1.0
    sizes: tuple[int, ...] = (1,)
    priority: int = 0
    deadline: float = math.inf


@dataclass(frozen=True)
class Load:
    """
    The load of a system: arrivals, number of requests, and their kinds.

    The first `warmup` requests are served, but not counted in statistics. A trace determines the number of requests
    itself.
    """

    arrivals: Arrivals
    requests: int = 100_000
    kinds: tuple[Kind, ...] = (Kind(),)
    warmup: int = 0

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self.arrivals.times) if isinstance(self.arrivals, Trace) else self.requests

    def check(self) -> None:
        """Raise `OptionError` for an invalid load."""
        _check_arrivals(self.arrivals)
        if self.count < 1:
            raise OptionError("there are no requests", hint="give 1 at least")
        if not 0 <= self.warmup < self.count:
            raise OptionError(f"{self.warmup} of {self.count} requests are left out", hint="leave out fewer")
        if not self.kinds or len({kind.name for kind in self.kinds}) < len(self.kinds):
            raise OptionError("kinds of requests have no names of their own", hint="name each kind, and once")
        for kind in self.kinds:
            if not (0 < kind.weight < math.inf and kind.sizes and min(kind.sizes) >= 1 and kind.deadline > 0):
                reason = f"kind '{kind.name}' has no weight, rows or deadline"
                raise OptionError(reason, hint="weights and deadlines are above 0, and a request has 1 row at least")


def _check_arrivals(arrivals: Arrivals) -> None:
    match arrivals:
        case ClosedLoop(clients, think, retry):
            if clients < 1 or not 0 <= think < math.inf or not 0 < retry < math.inf:
                raise OptionError(f"{clients} clients think for {think} s and try again after {retry} s")
        case Poisson(rate) | FixedRate(rate):
            if not 0 < rate < math.inf:
                raise OptionError(f"{rate} requests come a second", hint="a rate is above 0")
        case Trace(times):
            if not all(math.isfinite(time) for time in times) or any(np.diff(times) < 0):
                raise OptionError("the times of a trace decrease", hint="give seconds in order")


def open_times(arrivals: Poisson | FixedRate | Trace, count: int, random: np.random.Generator) -> list[float]:
    """The arrival times of requests that do not depend on answers, in seconds."""
    match arrivals:
        case Poisson(rate):
            return np.cumsum(random.exponential(1.0 / rate, count)).tolist()
        case FixedRate(rate):
            return (np.arange(count) / rate).tolist()
        case Trace(times):
            return list(times)


def kinds_and_rows(load: Load, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """The number of the kind of each request, and its rows."""
    count = load.count
    weights = np.array([kind.weight for kind in load.kinds])
    chosen = np.zeros(count, np.int64)
    if len(load.kinds) > 1:
        chosen = random.choice(len(load.kinds), count, p=weights / weights.sum())
    rows = np.ones(count, np.int64)
    for number, kind in enumerate(load.kinds):
        which = np.flatnonzero(chosen == number)
        sizes = np.array(kind.sizes, np.int64)
        rows[which] = sizes[random.integers(len(sizes), size=len(which))] if len(sizes) > 1 else sizes[0]
    return chosen.tolist(), rows.tolist()
