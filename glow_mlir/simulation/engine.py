"""
The simulator: events in time order, and a queue that distributes work to replicas.

A device processes its work in order, like the queues of devices (docs/devices.md). So the end of all stages of a call
is known when it begins, by sums and maxima (Baccelli et al., *Synchronization and Linearity*, 1992), and a call is one
event, regardless of its number of stages.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from glow_mlir.runtime.queue_trace import Span
from glow_mlir.simulation.arrivals import ClosedLoop, Load, kinds_and_rows, open_times
from glow_mlir.simulation.result import Result, Times, throughput
from glow_mlir.simulation.service import Law, Service, service_of
from glow_mlir.simulation.system import Stage, System

_ANSWER, _ENTER, _ARRIVE, _EXPIRE, _DUE = range(5)
"""Kinds of events; of simultaneous events, lower numbers come first."""

_NANOSECONDS = 1e9

_Planned = tuple[int, Service, float, tuple[tuple[int, float, float], ...], Stage]
"""A stage: its device's number, its law and share, and its predecessors with seconds, fixed and per row."""


def simulate(system: System, load: Load, *, seed: int = 0, traced: bool = False) -> Result:
    """
    The result of a system under a load; deterministic for the same arguments.

    With `traced`, the result contains the timeline of each device. Raises `OptionError` for invalid arguments.
    """
    system.check()
    load.check()
    run = _Run(system, load, seed, traced)
    run.go()
    return run.result()


class _Replicas:
    """Select the replica for the next call: the one with fewest running calls, and of these the least recently used."""

    def __init__(self, count: int, depth: int) -> None:
        self._depth = depth
        self._flying = [0] * count
        self._used = list(range(-count, 0))
        """The number of each replica's last call."""
        self._free = [(0, used, number) for number, used in enumerate(self._used)]
        """A heap of available replicas (running calls, last call, number), including outdated entries."""

    def next(self) -> int:
        """The number of the next replica; -1 if all are at their limit."""
        free = self._free
        while free:
            flying, used, number = free[0]
            if self._flying[number] == flying and self._used[number] == used:
                return number
            heappop(free)
        return -1

    def begin(self, number: int, call: int) -> None:
        """The next replica begins a call, with a higher number than all before."""
        self._flying[number] += 1
        self._used[number] = call
        if self._flying[number] < self._depth:
            heapreplace(self._free, (self._flying[number], call, number))
        else:
            heappop(self._free)

    def end(self, number: int) -> None:
        """A replica has finished a call."""
        self._flying[number] -= 1
        heappush(self._free, (self._flying[number], self._used[number], number))
        if len(self._free) > 4 * len(self._flying) + 64:  # Most are outdated.
            state = zip(self._flying, self._used, strict=True)
            self._free = [(*each, at) for at, each in enumerate(state) if each[0] < self._depth]
            heapify(self._free)


class _Run:
    """One simulation. Requests are numbered in the order of issue."""

    def __init__(self, system: System, load: Load, seed: int, traced: bool) -> None:
        arrivals, kinds, services = (np.random.default_rng([seed, part]) for part in range(3))
        self._system = system
        self._load = load
        self._count = load.count
        self._kind, self._rows = kinds_and_rows(load, kinds)
        match load.arrivals:
            case ClosedLoop() as loop:
                self._closed, self._arrived = loop, [0.0] * self._count
            case other:
                self._closed, self._arrived = None, open_times(other, self._count, arrivals)
        self._issued = 0
        self._now = 0.0
        self._events: list[tuple[float, int, int, int, list[int]]] = []
        """Events: time, kind, number of a request or call, and for an answer the replica and the requests."""
        self._begin_devices(services)
        self._cores = [-math.inf] * system.cores
        self._replicas = _Replicas(len(system.replicas), system.depth)
        self._begin_queue()
        self._begin_records(traced)

    def _begin_devices(self, random: np.random.Generator) -> None:
        """Number all stages. Equal laws share their random numbers, so draws depend on the order of calls."""
        devices = self._system.devices
        numbers = {name: number for number, name in enumerate(devices)}
        services: dict[Law, Service] = {}
        for replica in self._system.replicas:
            for stage in replica:
                if stage.law not in services:
                    services[stage.law] = service_of(stage.law, random)
        self._plans: list[list[_Planned]] = [
            [
                (
                    *(numbers[stage.device], services[stage.law], stage.share),
                    tuple((hop.stage, hop.seconds, hop.per_row) for hop in stage.after),
                    stage,
                )
                for stage in replica
            ]
            for replica in self._system.replicas
        ]
        self._slots = [[0.0] * self._system.calls.get(name, 1) for name in devices]
        """For each device, a heap of the times at which it becomes free."""
        self._busy = [0.0] * len(devices)

    def _begin_queue(self) -> None:
        """The queue: requests by priority, and all by age; removed requests stay until they come first."""
        priorities = sorted({kind.priority for kind in self._load.kinds})
        self._lanes: list[deque[int]] = [deque() for _ in priorities]
        self._lane_of = [self._lanes[priorities.index(kind.priority)] for kind in self._load.kinds]
        self._ages: deque[int] = deque()
        self._waiting = 0
        self._waiting_rows = 0
        self._has_left = bytearray(self._count)
        self._due = -1.0
        """The time at which the oldest request will have waited long enough, if an event is scheduled for it."""

    def _begin_records(self, traced: bool) -> None:
        self._entered = [math.nan] * self._count
        self._left = [math.nan] * self._count
        self._done = [math.nan] * self._count
        self._present = 0
        self._area = 0.0
        """The total seconds of requests in the system."""
        self._calls = 0
        self._called_rows = 0
        self._refused: list[int] = []
        self._expired: list[int] = []
        self._spans: list[Span] | None = [] if traced else None

    def go(self) -> None:
        """Run until all events are processed."""
        if self._closed is None:
            self._issued = self._count
            self._events.append((self._arrived[0], _ARRIVE, 0, 0, []))
            self._now = self._arrived[0]
        else:
            for _ in range(min(self._closed.clients, self._count)):
                self._issue(0.0)
        events = self._events
        handlers = (self._answer, self._enter, self._arrive, self._expire, self._look)
        while events:
            now = events[0][0]
            self._area += self._present * (now - self._now)
            self._now = now
            # Process all simultaneous events before calls begin, so that a batch contains all requests of that time.
            while events and events[0][0] == now:
                _, what, number, replica, requests = heappop(events)
                handlers[what](number, replica, requests)
            if self._waiting:
                self._dispatch()

    def _issue(self, time: float) -> None:
        """A client sends another request, if any are left."""
        number = self._issued
        if number < self._count:
            self._issued = number + 1
            self._arrived[number] = time
            heappush(self._events, (time, _ARRIVE, number, 0, []))

    def _arrive(self, number: int, replica: int, requests: list[int]) -> None:
        """A request arrives; the host processes it."""
        self._present += 1
        if self._closed is None and number + 1 < self._count:
            heappush(self._events, (self._arrived[number + 1], _ARRIVE, number + 1, 0, []))
        if not self._system.overhead:
            self._enter(number, replica, requests)
            return
        done = max(self._now, self._cores[0]) + self._system.overhead
        heapreplace(self._cores, done)
        heappush(self._events, (done, _ENTER, number, 0, []))

    def _enter(self, number: int, replica: int, requests: list[int]) -> None:
        """A request enters the queue, or is refused."""
        if self._system.queue is not None and self._waiting >= self._system.queue:
            self._refused.append(number)
            self._gone(1)
            if self._closed:
                self._issue(self._now + self._closed.think + self._closed.retry)
            return
        kind = self._kind[number]
        self._entered[number] = self._now
        self._lane_of[kind].append(number)
        self._waiting += 1
        self._waiting_rows += self._rows[number]
        if self._system.batching.delay:
            self._ages.append(number)
        if (deadline := self._load.kinds[kind].deadline) < math.inf:
            heappush(self._events, (max(self._now, self._arrived[number] + deadline), _EXPIRE, number, 0, []))

    def _expire(self, number: int, replica: int, requests: list[int]) -> None:
        """A request expires, unless it was taken before."""
        if self._has_left[number]:
            return
        self._leave(number)
        self._expired.append(number)
        self._gone(1)
        if self._closed:
            self._issue(self._now + self._closed.think)

    def _leave(self, number: int) -> None:
        """A request leaves the queue."""
        self._has_left[number] = 1
        self._waiting -= 1
        self._waiting_rows -= self._rows[number]

    def _gone(self, count: int) -> None:
        """Requests leave the system."""
        self._present -= count

    def _look(self, number: int, replica: int, requests: list[int]) -> None:
        """The oldest request may have waited long enough; this is checked where calls begin."""

    def _answer(self, number: int, replica: int, requests: list[int]) -> None:
        """A call is done, and its requests are answered."""
        self._replicas.end(replica)
        self._gone(len(requests))
        if self._closed:
            for _ in requests:
                self._issue(self._now + self._closed.think)

    def _dispatch(self) -> None:
        """Begin as many calls as possible."""
        while self._waiting and (replica := self._replicas.next()) >= 0 and self._is_due():
            requests, rows = self._taken()
            end = self._called(replica, rows)
            call = self._calls
            self._replicas.begin(replica, call)
            self._calls = call + 1
            self._called_rows += rows
            for number in requests:
                self._left[number] = self._now
                self._done[number] = end
            heappush(self._events, (end, _ANSWER, call, replica, requests))

    def _is_due(self) -> bool:
        """Whether a batch is full, or has waited long enough; otherwise schedule an event for that."""
        batching = self._system.batching
        if not batching.delay or self._waiting_rows >= batching.size:
            return True
        while self._has_left[self._ages[0]]:
            self._ages.popleft()
        due = self._entered[self._ages[0]] + batching.delay
        if due <= self._now:
            return True
        if due != self._due:
            self._due = due
            heappush(self._events, (due, _DUE, self._ages[0], 0, []))
        return False

    def _taken(self) -> tuple[list[int], int]:
        """The requests of the next batch in order of priority and age, without overtaking, and their rows."""
        most, rows = self._system.batching.size, 0
        found: list[int] = []
        for lane in self._lanes:
            while lane:
                number = lane[0]
                if not self._has_left[number]:
                    if found and rows + self._rows[number] > most:
                        return found, rows
                    self._leave(number)
                    found.append(number)
                    rows += self._rows[number]
                lane.popleft()
                if rows >= most:
                    return found, rows
        return found, rows

    def _called(self, replica: int, rows: int) -> float:
        """The end of a call that begins now; each stage starts after earlier work of its device."""
        ends: list[float] = []
        for device, service, share, before, stage in self._plans[replica]:
            begin = self._now
            for number, seconds, per_row in before:
                ready = ends[number] + seconds + per_row * rows
                if ready > begin:
                    begin = ready
            slots = self._slots[device]
            if slots[0] > begin:
                begin = slots[0]
            # A share is a quotient of integers: rounding errors must not add a row.
            taken = service(rows if share == 1.0 else math.ceil(rows * share - 1e-9))
            end = begin + taken
            heapreplace(slots, end)
            self._busy[device] += taken
            ends.append(end)
            if self._spans is not None:
                times = int(begin * _NANOSECONDS), int(end * _NANOSECONDS)
                self._spans.append(Span(stage.device, stage.name, *times))
        return max(ends)

    def result(self) -> Result:
        """The result of the simulation."""
        warmup = self._load.warmup
        arrived, done = np.array(self._arrived), np.array(self._done)
        latency, queued = done - arrived, np.array(self._left) - np.array(self._entered)
        counts = np.arange(self._count) >= warmup
        answered = counts & np.isfinite(done)
        kinds = np.array(self._kind)
        seconds = self._now - float(arrived[0])
        whole = seconds or math.inf
        return Result(
            requests=self._count - warmup,
            answered=int(answered.sum()),
            refused=sum(number >= warmup for number in self._refused),
            expired=sum(number >= warmup for number in self._expired),
            seconds=seconds,
            throughput=throughput(arrived, done, warmup),
            latency=Times.of(latency[answered]),
            queued=Times.of(queued[answered]),
            by_kind={
                kind.name: Times.of(latency[answered & (kinds == number)])
                for number, kind in enumerate(self._load.kinds)
            },
            calls=self._calls,
            batch=self._called_rows / max(self._calls, 1),
            utilisation={
                name: busy / len(slots) / whole
                for name, busy, slots in zip(self._system.devices, self._busy, self._slots, strict=True)
            },
            in_system=self._area / whole,
            spans=tuple(self._spans or ()),
        )
