"""The queue of a network: the order, limit and batching of requests."""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from threading import TIMEOUT_MAX, Condition
from typing import Generic, TypeVar

from glow_mlir.errors import QueueFullError, UnknownNetworkError
from glow_mlir.host.requests import Request
from glow_mlir.support.dataclass import dataclass

Slot = TypeVar("Slot")


@dataclass(frozen=True)
class Batching:
    """
    How requests are batched: up to `size` samples along the first axis, where the first waits at most `delay` seconds;
    a delay of 0 batches the requests present when a slot becomes free.
    """

    size: int = 1
    delay: float = 0.0


class RequestQueue(Generic[Slot]):
    """
    A queue of at most `bound` waiting requests, and the slots that compute them.

    A slot is taken together with its requests, and given back. A request that ends while waiting leaves the queue.
    """

    def __init__(self, name: str, bound: int, batching: Batching) -> None:
        self.name = name
        self.bound = bound
        self.batching = batching
        self.waiting = 0
        """The number of waiting requests."""
        self.is_closed = False
        self._changed = Condition()
        self._heap: list[Request] = []
        self._next = 0
        self._rows: Counter[object] = Counter()
        """Batching key → number of waiting samples."""
        self._free: deque[Slot] = deque()
        self._busy = 0

    def add_slot(self, slot: Slot) -> None:
        """Add a free slot."""
        with self._changed:
            self._free.append(slot)
            if self.waiting:
                self._changed.notify()

    def drop_slot(self) -> None:
        """A taken slot will not be given back, or only later."""
        with self._changed:
            self._busy -= 1
            if self.is_closed:
                self._changed.notify_all()

    def put(self, request: Request, *, again: bool = False) -> None:
        """
        Queue a request; with `again`, a retry goes before others.

        Raises `QueueFullError` if the queue is full.
        """
        with self._changed:
            if again:
                if request.is_done:
                    return
            else:
                if self.is_closed:
                    raise UnknownNetworkError(f"'{self.name}' was removed and accepts no requests")
                if self.waiting >= self.bound:
                    reason = f"the queue of '{self.name}' is full: {self.waiting} requests wait"
                    raise QueueFullError(reason, hint="retry later, or lengthen the queue")
                self._next += 1
                request.number = self._next
            heapq.heappush(self._heap, request)
            request.is_queued = True
            self.waiting += 1
            self._rows[request.key] += request.rows
            if self._free:
                self._changed.notify()

    def left(self, request: Request) -> bool:
        """A request has ended; return whether it was waiting."""
        with self._changed:
            if not request.is_queued:
                return False
            self._forget(request)
            if self.is_closed:
                self._changed.notify_all()
            # Ended requests stay in the heap until they reach the front, or until they are the majority.
            if len(self._heap) > 2 * self.waiting + 64:
                self._heap = [item for item in self._heap if item.is_queued]
                heapq.heapify(self._heap)
            return True

    def _forget(self, request: Request) -> None:
        request.is_queued = False
        self.waiting -= 1
        self._rows[request.key] -= request.rows
        if self._rows[request.key] <= 0:
            del self._rows[request.key]

    def enter(self) -> Slot | None:
        """
        A slot for an immediate call by the caller; `None` if none is free, others wait, or requests are being gathered.
        """
        with self._changed:
            if self.waiting or not self._free or self.batching.delay or self.is_closed:
                return None
            self._busy += 1
            return self._free.popleft()

    def give_back(self, slot: Slot) -> None:
        """Give back a slot whose requests are done."""
        with self._changed:
            self._busy -= 1
            self._free.append(slot)
            if self.is_closed:
                self._changed.notify_all()
            elif self.waiting:
                self._changed.notify()

    def take(self) -> tuple[Slot, list[Request]] | None:
        """The requests of the next call, and a slot; `None` when there are no more."""
        with self._changed:
            while True:
                wait = None
                if self._free and self.waiting:
                    wait = self._time_to_gather()
                    if wait <= 0:
                        self._busy += 1
                        return self._free.popleft(), self._gathered()
                elif self.is_closed and not self.waiting:
                    return None
                self._changed.wait(None if wait is None else min(wait, TIMEOUT_MAX))

    def _front(self) -> Request:
        while not self._heap[0].is_queued:
            heapq.heappop(self._heap)
        return self._heap[0]

    def _time_to_gather(self) -> float:
        """Seconds that the first request's call may still wait for others."""
        first, batching = self._front(), self.batching
        if not batching.delay or self._rows[first.key] >= batching.size or self.is_closed:
            return 0.0
        return first.arrived + batching.delay - time.perf_counter()

    def _gathered(self) -> list[Request]:
        """The first request, and those batched with it, in order."""
        first = self._front()
        found, others, rows = [heapq.heappop(self._heap)], list[Request](), first.rows
        size = self.batching.size
        while rows < size and self._rows[first.key] > rows and self._heap:
            item = heapq.heappop(self._heap)
            if not item.is_queued:
                continue
            if item.key == first.key and rows + item.rows <= size:
                rows += item.rows
                found.append(item)
            else:
                others.append(item)
                if item.key == first.key:  # It does not fit, and must not be overtaken.
                    break
        for item in others:
            heapq.heappush(self._heap, item)
        for item in found:
            self._forget(item)
        return found

    def all_waiting(self) -> list[Request]:
        """The requests that wait."""
        with self._changed:
            return [item for item in self._heap if item.is_queued]

    def close(self) -> None:
        """Accept no more requests; waiting ones are still computed, unless they are cancelled."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def reset_after_fork(self) -> None:
        """Start over in a child of `os.fork`, because waiting and running requests belong to the parent."""
        self._changed = Condition()
        self._heap, self.waiting, self._busy = [], 0, 0
        self._rows.clear()
        self._free.clear()

    def wait_until_idle(self, timeout: float) -> bool:
        """After closing, wait until nothing waits or runs; false on timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.waiting and not self._busy, min(timeout, TIMEOUT_MAX))
