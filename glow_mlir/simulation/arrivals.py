"""When requests come, and what they are like."""

from __future__ import annotations

import math

import numpy as np

from glow_mlir.errors import OptionError
from glow_mlir.support.dataclass import dataclass

RETRY = 1e-3
"""Seconds after which a client that was refused asks again."""


@dataclass(frozen=True)
class ClosedLoop:
    """
    Clients that each wait for their answer, think for some seconds, and ask again.

    One that is refused waits for `retry` seconds besides; one whose request expired is told so at its deadline.
    """

    clients: int
    think: float = 0.0
    retry: float = RETRY


@dataclass(frozen=True)
class Poisson:
    """Requests that know nothing of each other, so many a second on average."""

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
    Some of the requests: how many in comparison with the other kinds, their rows, and how they are waited for.

    Each has one of `sizes` rows, each as likely. Those of a lower `priority` are taken first. A request that still
    waits `deadline` seconds after it came expires.
    """

    name: str = "request"
    weight: float = 1.0
    sizes: tuple[int, ...] = (1,)
    priority: int = 0
    deadline: float = math.inf


@dataclass(frozen=True)
class Load:
    """
    What is asked of a system: when, how many requests, and of which kinds.

    The first `warmup` requests are served, but are not in the statistics. A trace has its own number of requests.
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
        """Raise `OptionError` where this makes no sense."""
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
    """The seconds at which requests come that wait for nobody."""
    match arrivals:
        case Poisson(rate):
            return np.cumsum(random.exponential(1.0 / rate, count)).tolist()
        case FixedRate(rate):
            return (np.arange(count) / rate).tolist()
        case Trace(times):
            return list(times)


def kinds_and_rows(load: Load, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """The kind of each request, by its number, and its rows."""
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
