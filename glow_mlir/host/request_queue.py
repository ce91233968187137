"""The queue of a network: who comes next, for whom there is room, and which requests are computed together."""

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
    How requests become one call: up to `size` samples along the first axis, of which the first has waited `delay`
    seconds at most; a delay of 0 takes those that are there when there is somebody free to compute them.
    """

    size: int = 1
    delay: float = 0.0


class RequestQueue(Generic[Slot]):
    """
    Requests that wait, `bound` at most, and the slots in which they are computed.

    A slot is taken with the requests for it, and given back. A request that is done while it waits leaves the queue.
    """

    def __init__(self, name: str, bound: int, batching: Batching) -> None:
        self.name = name
        self.bound = bound
        self.batching = batching
        self.waiting = 0
        """How many requests wait."""
        self.is_closed = False
        self._changed = Condition()
        self._heap: list[Request] = []
        self._next = 0
        self._rows: Counter[object] = Counter()
        """Key of requests → how many samples wait."""
        self._free: deque[Slot] = deque()
        self._busy = 0

    def add_slot(self, slot: Slot) -> None:
        """Have a slot that is free."""
        with self._changed:
            self._free.append(slot)
            if self.waiting:
                self._changed.notify()

    def drop_slot(self) -> None:
        """A slot that was taken does not come back, or later."""
        with self._changed:
            self._busy -= 1
            if self.is_closed:
                self._changed.notify_all()

    def put(self, request: Request, *, again: bool = False) -> None:
        """
        Let a request wait, one that was computed already before others.

        Raises `QueueFullError` where as many wait as may.
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
        """A request is done; whether it was waiting."""
        with self._changed:
            if not request.is_queued:
                return False
            self._forget(request)
            if self.is_closed:
                self._changed.notify_all()
            # What is done stays in the heap until it comes to the front; not for long where that is most.
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
        """A slot for who computes at once, by itself; `None` where nobody is free, others wait, or requests gather."""
        with self._changed:
            if self.waiting or not self._free or self.batching.delay or self.is_closed:
                return None
            self._busy += 1
            return self._free.popleft()

    def give_back(self, slot: Slot) -> None:
        """Free a slot whose requests are done."""
        with self._changed:
            self._busy -= 1
            self._free.append(slot)
            if self.is_closed:
                self._changed.notify_all()
            elif self.waiting:
                self._changed.notify()

    def take(self) -> tuple[Slot, list[Request]] | None:
        """The requests that are to be computed next in one call, and a slot; `None` when there are no more."""
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
        """How many seconds others may still come for the call of the first request."""
        first, batching = self._front(), self.batching
        if not batching.delay or self._rows[first.key] >= batching.size or self.is_closed:
            return 0.0
        return first.arrived + batching.delay - time.perf_counter()

    def _gathered(self) -> list[Request]:
        """The first request, and those that are computed with it, in their order."""
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
                if item.key == first.key:  # It does not fit any more, and nobody overtakes it.
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
        """Take no requests any more; those that wait are still computed, unless somebody ends them."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def reset_after_fork(self) -> None:
        """Begin anew in a child of `os.fork`: who waited, and who computed, is in the parent."""
        self._changed = Condition()
        self._heap, self.waiting, self._busy = [], 0, 0
        self._rows.clear()
        self._free.clear()

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait, when it is closed, until nobody waits and nothing is computed; false where that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.waiting and not self._busy, min(timeout, TIMEOUT_MAX))
