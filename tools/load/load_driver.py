"""Closed and open load loops: when each request is sent, and its outcome."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import count
from random import Random
from typing import NamedTuple, Protocol

from glow_mlir.support.dataclass import dataclass


class Failure(NamedTuple):
    """Why a request failed: an HTTP or gRPC status, `connection` or `timeout`, and a one-line reason."""

    status: str
    reason: str


LATE = Failure("timeout", "no answer came in time")

Done = Callable[[Failure | None], None]
"""Callback for an answered or failed request."""


class Sender(Protocol):
    """A connection to a server, which sends one request at a time."""

    def send(self, done: Done) -> None:
        """Send a request; `done` is called later, never by this call itself."""
        ...

    def abort(self) -> None:
        """End the request under way, which fails as `LATE`."""
        ...


class Timers(Protocol):
    """A clock in seconds with timed callbacks, as an event loop provides."""

    def time(self) -> float:
        """The time now."""
        ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        """Call a function at the given time, or soon if the time is past."""
        ...


@dataclass(frozen=True)
class Budget:
    """The length of a load: a number of requests, or a number of seconds."""

    seconds: float | None = None
    requests: int | None = None

    def allows(self, sent: int, passed: float) -> bool:
        """Whether another request may be sent after `sent` requests and `passed` seconds."""
        return (self.requests is None or sent < self.requests) and (self.seconds is None or passed < self.seconds)


@dataclass(frozen=True)
class Arrivals:
    """Arrival times of an open loop: a Poisson process with a mean rate per second, or equal intervals."""

    rate: float
    seed: int = 0
    is_fixed: bool = False

    def times(self) -> Iterator[float]:
        """Yield arrival times in seconds since the start, without end."""
        if self.is_fixed:
            yield from (number / self.rate for number in count())
        draw, time = Random(self.seed), 0.0
        while True:
            time += draw.expovariate(self.rate)
            yield time


class FailureCount(NamedTuple):
    """The number of failures of one kind, and the reason of the first."""

    number: int
    reason: str

    def as_failure(self, status: str) -> Failure:
        """The first of the failures."""
        return Failure(status, self.reason)


@dataclass
class Record:
    """The outcomes of requests; all times are in seconds."""

    latencies: array[float] = field(default_factory=lambda: array("d"))
    """Latencies of answered requests, measured from their due times."""
    failures: dict[str, FailureCount] = field(default_factory=dict[str, FailureCount])
    """Failures by status."""
    lateness: array[float] = field(default_factory=lambda: array("d"))
    """How late each request of an open loop was noticed after its due time; a delay of the load generator."""
    begin: float = 0.0
    end: float = 0.0

    @property
    def failed(self) -> int:
        """The number of requests without an answer."""
        return sum(found.number for found in self.failures.values())

    def add(self, due: float, now: float, failure: Failure | None) -> None:
        """Record a request that was due at `due`, and was answered or failed at `now`."""
        if failure is None:
            self.latencies.append(now - due)
            return
        number, reason = self.failures.get(failure.status, (0, failure.reason))
        self.failures[failure.status] = FailureCount(number + 1, reason)


class _Client:
    """A sender with the due time and the send time of its running request."""

    __slots__ = ("_answered", "_sender", "due", "is_busy", "sent")

    def __init__(self, sender: Sender, answered: Callable[[_Client, Failure | None], None]) -> None:
        self._sender = sender
        self._answered = answered
        self.is_busy = False
        self.due = self.sent = 0.0

    def send(self, due: float, now: float) -> None:
        self.due, self.sent, self.is_busy = due, now, True
        self._sender.send(self._done)

    def abort(self) -> None:
        self._sender.abort()

    def _done(self, failure: Failure | None) -> None:
        self.is_busy = False
        self._answered(self, failure)


class Load:
    """Send requests through some senders until the budget is used up and all are answered, then report."""

    def __init__(
        self, timers: Timers, senders: Sequence[Sender], budget: Budget, patience: float, ended: Callable[[], None]
    ) -> None:
        """`patience` is the timeout of an answer in seconds."""
        self.record = Record()
        self._timers = timers
        self._clients = [_Client(sender, self._answered) for sender in senders]
        self._budget = budget
        self._patience = patience
        self._tell = ended
        self._sent = 0
        self._has_ended = False

    def start(self) -> None:
        """Start now."""
        self.record.begin = self._timers.time()
        self._watch()

    def _answered(self, client: _Client, failure: Failure | None) -> None:
        raise NotImplementedError

    def _watch(self) -> None:
        """Abort requests that take too long, and check again later."""
        if self._has_ended:
            return
        now = self._timers.time()
        for client in self._clients:
            if client.is_busy and now - client.sent > self._patience:
                client.abort()
        # One timer for each request would cost more than many servers need to answer one.
        self._timers.call_at(now + min(1.0, self._patience / 4), self._watch)

    def _end(self, now: float) -> None:
        self.record.end = now
        self._has_ended = True
        self._tell()


class ClosedLoad(Load):
    """Clients that wait for each answer, then pause for `think` seconds before the next request."""

    def __init__(
        self,
        timers: Timers,
        senders: Sequence[Sender],
        budget: Budget,
        patience: float,
        ended: Callable[[], None],
        think: float = 0.0,
    ) -> None:
        super().__init__(timers, senders, budget, patience, ended)
        self._think = think
        self._active = len(senders)

    def start(self) -> None:
        """Start all clients now."""
        super().start()
        for client in self._clients:
            self._next(client, self.record.begin)

    def _next(self, client: _Client, now: float) -> None:
        if self._budget.allows(self._sent, now - self.record.begin):
            self._sent += 1
            client.send(now, now)
            return
        self._active -= 1
        if not self._active:
            self._end(now)

    def _answered(self, client: _Client, failure: Failure | None) -> None:
        now = self._timers.time()
        self.record.add(client.due, now, failure)
        if self._think:
            self._timers.call_at(now + self._think, lambda: self._next(client, self._timers.time()))
        else:
            self._next(client, now)


class OpenLoad(Load):
    """
    Requests that arrive at their due times, whether or not earlier ones are answered.

    A request waits if no sender is free, and its latency counts from its due time. So a stalled server is charged for
    the requests that arrive meanwhile.
    """

    def __init__(
        self,
        timers: Timers,
        senders: Sequence[Sender],
        budget: Budget,
        patience: float,
        ended: Callable[[], None],
        arrivals: Arrivals,
    ) -> None:
        super().__init__(timers, senders, budget, patience, ended)
        self._times = arrivals.times()
        self._due: float | None = None
        self._waiting = deque[float]()
        self._idle = list(self._clients)

    def start(self) -> None:
        """Start now; the first request is sent at its due time."""
        super().start()
        self._due = self._following()
        self._arrive()

    def _following(self) -> float | None:
        """The due time of the next request; `None` after the last."""
        passed = next(self._times)
        if not self._budget.allows(self._sent, passed):
            return None
        self._sent += 1
        return self.record.begin + passed

    def _arrive(self) -> None:
        """Take the requests that are due, and schedule the next call."""
        now = self._timers.time()
        while self._due is not None and self._due <= now:
            self._waiting.append(self._due)
            self.record.lateness.append(now - self._due)
            self._due = self._following()
        while self._waiting and self._idle:
            self._idle.pop().send(self._waiting.popleft(), now)
        if self._due is not None:
            self._timers.call_at(self._due, self._arrive)
        elif self._waiting:
            self._timers.call_at(now + self._patience, self._give_up)
        self._check_end(now)

    def _answered(self, client: _Client, failure: Failure | None) -> None:
        now = self._timers.time()
        self.record.add(client.due, now, failure)
        if self._waiting:
            client.send(self._waiting.popleft(), now)
        else:
            self._idle.append(client)
            self._check_end(now)

    def _give_up(self) -> None:
        """Fail the requests that still wait for a sender."""
        now = self._timers.time()
        while self._waiting:
            self.record.add(self._waiting.popleft(), now, LATE)
        self._check_end(now)

    def _check_end(self, now: float) -> None:
        is_done = self._due is None and not self._waiting and len(self._idle) == len(self._clients)
        if is_done and not self._has_ended:
            self._end(now)
