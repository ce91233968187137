"""
Dynamic storage allocation: offsets of buffers with known lifetimes in one region.

The problem is NP-hard. Requests are placed in sequence at the lowest offset that is free throughout their lifetime
(first fit), in several orders; if none reaches the lower bound, the best one is improved by moving the highest requests
further to the front.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

WORK = 500_000
"""Number of neighbouring orders tried in an improvement."""

FAR = 4
"""One in so many moves goes to any earlier position, the others to just before a neighbour."""


class Request(NamedTuple):
    """A buffer of `size` bytes, live from position `begin` up to and excluding `end`."""

    begin: int
    end: int
    size: int


Order = list[int]
"""Request numbers, in the order of placement."""


class Placement:
    """The requests of one region, and for each the requests that are live with it."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.neighbours: list[list[int]] = [[] for _ in requests]
        live: list[int] = []
        for number in sorted(range(len(requests)), key=lambda number: requests[number].begin):
            if not requests[number].size:
                continue
            live = [other for other in live if requests[other].end > requests[number].begin]
            self.neighbours[number] += live
            for other in live:
                self.neighbours[other].append(number)
            live.append(number)
        self.pressure = self._pressures()
        self.bound = max(self.pressure, default=0)
        self.work = 0

    def _pressures(self) -> list[int]:
        """For each request, the peak of live bytes during its lifetime."""
        change = [0] * (max((request.end for request in self.requests), default=0) + 1)
        for begin, end, size in self.requests:
            change[begin] += size
            change[end] -= size
        live = list(accumulate(change))
        return [max(live[begin:end], default=0) for begin, end, _ in self.requests]

    def first_fit(self, order: Sequence[int]) -> list[int]:
        """The offset of each request if placed in that order."""
        offsets = [-1] * len(self.requests)
        for number in order:
            size = self.requests[number].size
            placed = sorted([(offsets[n], self.requests[n].size) for n in self.neighbours[number] if offsets[n] >= 0])
            self.work += len(self.neighbours[number]) + 1
            offset = 0
            for start, length in placed:
                if start - offset >= size:
                    break
                offset = max(offset, start + length)
            offsets[number] = offset
        return offsets

    def extent(self, offsets: Sequence[int]) -> int:
        """The end of the last request."""
        return max((offset + request.size for offset, request in zip(offsets, self.requests, strict=True)), default=0)

    def orders(self) -> Iterator[Order]:
        """The initial orders."""
        for key in KEYS.values():
            keys = [key(request, pressure) for request, pressure in zip(self.requests, self.pressure, strict=True)]
            yield sorted(range(len(keys)), key=keys.__getitem__)


KEYS: dict[str, Callable[[Request, int], tuple[int, ...]]] = {
    "pressure": lambda request, pressure: (-pressure, request.begin),
    "pressure, size": lambda request, pressure: (-pressure, -request.size, request.begin),
    "pressure, duration": lambda request, pressure: (-pressure, request.begin - request.end, -request.size),
    "size": lambda request, _: (-request.size, request.begin),
    "duration": lambda request, _: (request.begin - request.end, -request.size),
    "area": lambda request, _: (-request.size * (request.end - request.begin), request.begin),
    "begin": lambda request, _: (request.begin, -request.size),
    "end": lambda request, _: (-request.end, -request.size),
}
"""
Orders in which requests are placed; the first placed get the lowest offsets.

The second argument is the pressure of a request: the most bytes that are live at once during its life. The second and
third order are those of Glow's MemoryAllocator.
"""


def place(requests: Sequence[Request]) -> list[int]:
    """An offset for each request: the best of all orders, improved if it is above the lower bound."""
    placement = Placement(requests)
    best: Order = []
    offsets: list[int] = []
    for order in placement.orders():
        found = placement.first_fit(order)
        if not offsets or placement.extent(found) < placement.extent(offsets):
            best, offsets = order, found
        if placement.extent(offsets) <= placement.bound:
            return offsets
    return improved(placement, best, offsets)


def improved(placement: Placement, order: Order, offsets: list[int]) -> list[int]:
    """Offsets at least as good: the highest requests, or their neighbours, are placed earlier; seeded."""
    draw = random.Random(0)
    best, extent = offsets, placement.extent(offsets)
    placement.work = 0
    while extent > placement.bound and placement.work < WORK:
        moved = _moved(placement, order, offsets, draw)
        found = placement.first_fit(moved)
        if placement.extent(found) <= placement.extent(offsets):
            order, offsets = moved, found
        if placement.extent(found) < extent:
            best, extent = found, placement.extent(found)
    return best


def _moved(placement: Placement, order: Order, offsets: Sequence[int], draw: random.Random) -> Order:
    """`order` with one request moved forward: a highest one, or one live with it."""
    extent = placement.extent(offsets)
    highest = [
        n for n, request in enumerate(placement.requests) if request.size and offsets[n] + request.size == extent
    ]
    chosen = draw.choice(highest)
    if draw.randrange(2):
        chosen = draw.choice([chosen, *placement.neighbours[chosen]])
    position = order.index(chosen)
    near = [order.index(n) for n in placement.neighbours[chosen]] if draw.randrange(FAR) else []
    earlier = [place for place in near if place < position]
    target = draw.choice(earlier) if earlier else draw.randrange(position + 1)
    moved = order[:position] + order[position + 1 :]
    moved.insert(target, chosen)
    return moved
