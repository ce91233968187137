"""Search for the best order of one segment: exact within a work limit, else a beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from heapq import heappop, heappush, nsmallest
from typing import NamedTuple

from glow_mlir.analysis.program import Program
from glow_mlir.support.dataclass import dataclass

EXACT_WORK = 30_000
"""Maximum number of transitions in the exact search of one segment."""

WIDTHS = (1, 4, 16, 64)
"""Beam widths, tried in sequence after the exact search."""

LARGEST_BOUNDED = 64
"""Maximum number of steps for which the bound of a segment considers buffers live across each step."""


@dataclass
class LocalBuffer:
    """A buffer from the view of one segment; sets of steps are bit masks over the segment."""

    size: int
    is_open: bool
    """Whether an earlier segment writes it."""
    stays: bool
    """Whether a later segment uses it."""
    writers: int = 0
    users: int = 0


class Change(NamedTuple):
    """A buffer that a step opens unless one of `others` is done, or closes once all of `others` are."""

    size: int
    others: int


class Sharing(NamedTuple):
    """A buffer that may reuse a closing one: steps that must not be done, and steps that must be."""

    size: int
    buffer: int
    offset: int
    not_done: int
    done: int


class Trail(NamedTuple):
    """The steps that led to a state, last first."""

    last: int
    before: Trail | None


class State(NamedTuple):
    """A set of completed steps, in some order, and its cost."""

    peak: int
    live: int
    done: int
    ready: int
    trail: Trail | None


class Segment:
    """Consecutive steps of a program, and the best known order of them."""

    def __init__(self, program: Program, orders: Sequence[Sequence[int]], live: int, buffers: Buffers, index: int):
        self.steps = orders[0]
        self.live = live
        offset = {number: position for position, number in enumerate(self.steps)}
        self.full = (1 << len(self.steps)) - 1
        self.needs = [0] * len(self.steps)
        self.after: list[list[int]] = [[] for _ in self.steps]
        self.buffers = buffers.of_segment(program, self.steps, index)
        for position, number in enumerate(self.steps):
            for earlier in program.steps[number].before:
                if earlier in offset:
                    self.needs[position] |= 1 << offset[earlier]
                    self.after[offset[earlier]].append(position)
        self._set_changes(program)
        self._concerned = [self._others(position) for position in range(len(self.steps))]
        self._costs: list[dict[int, tuple[int, int]]] = [{} for _ in self.steps]
        self.best: list[int] = []
        self.peak = -1
        for order in orders:
            known = [offset[number] for number in order]
            cost = self.peak_of(known)
            if self.peak < 0 or cost < self.peak:
                self.best, self.peak = known, cost
        self.bound = self.peak if len(self.steps) == 1 else self._lower_bound(program)

    def _set_changes(self, program: Program) -> None:
        self.opens: list[list[Change]] = []
        self.closes: list[list[Change]] = []
        self.shares: list[list[Sharing]] = []
        for position, number in enumerate(self.steps):
            step, own = program.steps[number], 1 << position
            local = self.buffers
            opens = {b: Change(local[b].size, local[b].writers & ~own) for b in step.writes if not local[b].is_open}
            used = dict.fromkeys((*step.writes, *step.reads))
            closes = {b: Change(local[b].size, local[b].users & ~own) for b in used if not local[b].stays}
            self.opens.append(list(opens.values()))
            self.closes.append(list(closes.values()))
            self.shares.append(
                [
                    Sharing(opens[w].size, w, r, opens[w].others, closes[r].others)
                    for w, r in step.shares
                    if w in opens and r in closes and opens[w].size <= closes[r].size
                ]
            )

    def _lower_bound(self, program: Program) -> int:
        """The peak of the worst step in any order: its own buffers, and those that must be live across it."""
        through = self.live - sum(buffer.size for buffer in self.buffers.values() if buffer.is_open)
        known = len(self.steps) <= LARGEST_BOUNDED
        earlier, later = self._closures() if known else ([0] * len(self.steps), [0] * len(self.steps))
        highest = self.live
        for position, number in enumerate(self.steps):
            step, own = program.steps[number], 1 << position
            needed = through - max((sharing.size for sharing in self.shares[position]), default=0)
            if len(self.shares[position]) > 1:
                needed = through - sum({s.buffer: s.size for s in self.shares[position]}.values())
            candidates = self.buffers.items() if known else [(b, self.buffers[b]) for b in {*step.writes, *step.reads}]
            for _, buffer in candidates:
                opened = buffer.is_open or buffer.writers & (earlier[position] | own)
                used = buffer.stays or buffer.users & (later[position] | own)
                needed += buffer.size if opened and used else 0
            highest = max(highest, needed)
        return highest

    def _closures(self) -> tuple[list[int], list[int]]:
        """For each step, its predecessors and successors, transitively."""
        earlier, later = list(self.needs), [0] * len(self.steps)
        for position in range(len(self.steps)):
            for waiting in self.after[position]:
                earlier[waiting] |= earlier[position]
        for position in reversed(range(len(self.steps))):
            for waiting in self.after[position]:
                later[position] |= later[waiting] | 1 << waiting
        return earlier, later

    def _others(self, position: int) -> int:
        """The steps whose completion affects the cost of a step."""
        others = 0
        for change in (*self.opens[position], *self.closes[position]):
            others |= change.others
        return others

    def cost(self, position: int, done: int) -> tuple[int, int]:
        """The live bytes that a step adds while it runs, and those left after it."""
        known, done = self._costs[position], done & self._concerned[position]
        found = known.get(done)
        if found is None:
            found = known[done] = self._cost(position, done)
        return found

    def _cost(self, position: int, done: int) -> tuple[int, int]:
        opened = closed = 0
        for size, others in self.opens[position]:
            if not others & done:
                opened += size
        for size, others in self.closes[position]:
            if not others & ~done:
                closed += size
        shared = 0
        if self.shares[position]:
            taken: set[int] = set()
            for size, buffer, offset, not_done, needed in self.shares[position]:
                if not (not_done & done or needed & ~done or buffer in taken or offset in taken):
                    taken |= {buffer, offset}
                    shared += size
        return opened - shared, opened - closed

    def start(self, floor: int) -> State:
        """The state in front of the first step; peaks below `floor` are ignored."""
        ready = sum(1 << position for position, needs in enumerate(self.needs) if not needs)
        return State(max(floor, self.live), self.live, 0, ready, None)

    def run(self, state: State, position: int, cost: tuple[int, int]) -> State:
        """The state after one more step."""
        done = state.done | 1 << position
        ready = state.ready & ~(1 << position)
        for waiting in self.after[position]:
            if not self.needs[waiting] & ~done:
                ready |= 1 << waiting
        extra, change = cost
        return State(
            max(state.peak, state.live + extra), state.live + change, done, ready, Trail(position, state.trail)
        )

    def peak_of(self, order: Sequence[int]) -> int:
        """The peak of live bytes in that order."""
        state = self.start(0)
        for position in order:
            state = self.run(state, position, self.cost(position, state.done))
        return state.peak

    def best_order(self) -> list[int]:
        """The best known order, as steps of the program."""
        return [self.steps[position] for position in self.best]


class Buffers:
    """The segments in which each buffer is live: from the first writer to the last user."""

    def __init__(self, program: Program, home: Sequence[int]) -> None:
        self.first = [min((home[step] for step in steps), default=0) for steps in program.writers]
        self.last = [max((home[step] for step in steps), default=0) for steps in program.users]

    def live_at_entry(self, sizes: Sequence[int], segments: int) -> list[int]:
        """The live bytes in front of each segment."""
        change = [0] * (segments + 1)
        for size, first, last in zip(sizes, self.first, self.last, strict=True):
            if last > first:
                change[first + 1] += size
                change[last + 1 if last + 1 <= segments else segments] -= size
        live = 0
        found: list[int] = []
        for index in range(segments):
            live += change[index]
            found.append(live)
        return found

    def of_segment(self, program: Program, steps: Sequence[int], index: int) -> dict[int, LocalBuffer]:
        """The buffers that the steps of one segment use."""
        found: dict[int, LocalBuffer] = {}
        for position, number in enumerate(steps):
            step = program.steps[number]
            for buffer in (*step.writes, *step.reads):
                if buffer not in found:
                    size = program.sizes[buffer]
                    found[buffer] = LocalBuffer(size, self.first[buffer] < index, self.last[buffer] > index)
                found[buffer].users |= 1 << position
            for buffer in step.writes:
                found[buffer].writers |= 1 << position
        return found


class OutOfWorkError(Exception):
    """The search has tried as many transitions as it may."""


@dataclass
class OrderSearch:
    """One search of a segment; peaks up to `floor` are considered equal."""

    segment: Segment
    floor: int
    ceiling: int
    """Peaks at or above this are no improvement."""
    allowed: int
    work: int = field(default=0)

    def transitions(self, state: State) -> Iterator[tuple[int, tuple[int, int]]]:
        """Ready steps with their cost; steps that depend on the last one come first."""
        last = 0 if state.trail is None else sum(1 << waiting for waiting in self.segment.after[state.trail.last])
        for part in (state.ready & last, state.ready & ~last):
            rest = part
            while rest:
                lowest = rest & -rest
                rest ^= lowest
                position = lowest.bit_length() - 1
                self.work += 1
                yield position, self.segment.cost(position, state.done)
        if self.work > self.allowed:
            raise OutOfWorkError

    def settle(self, state: State) -> State:
        """Run every step that raises neither the peak nor the live bytes after it: waiting cannot be better."""
        while True:
            for position, cost in self.transitions(state):
                if cost[1] <= 0 and state.live + cost[0] <= state.peak:
                    state = self.segment.run(state, position, cost)
                    break
            else:
                return state

    def successors(self, state: State) -> Iterator[State]:
        """The settled states after one more step, without those that cannot beat the best known order."""
        for position, cost in self.transitions(state):
            if state.live + cost[0] < self.ceiling:
                yield self.settle(self.segment.run(state, position, cost))

    def accept(self, state: State) -> None:
        """Record the order of a complete state."""
        order: list[int] = []
        trail = state.trail
        while trail is not None:
            order.append(trail.last)
            trail = trail.before
        self.segment.best = order[::-1]
        self.segment.peak = self.segment.peak_of(self.segment.best)

    def exact(self) -> None:
        """Expand the state of the lowest peak, the longest on ties, until one is complete (Dijkstra)."""
        first = self.settle(self.segment.start(self.floor))
        heap = [(first.peak, 0, 0, first)]
        seen = {first.done: first.peak}
        while heap:
            _, _, _, state = heappop(heap)
            if state.done == self.segment.full:
                return self.accept(state)
            if seen[state.done] < state.peak:
                continue
            for following in self.successors(state):
                if seen.get(following.done, following.peak + 1) > following.peak:
                    seen[following.done] = following.peak
                    heappush(heap, (following.peak, -following.done.bit_count(), len(seen), following))

    def beam(self, width: int) -> bool:
        """Expand the `width` states of each length with the fewest live bytes; return whether an order was found."""
        first = self.settle(self.segment.start(self.floor))
        layers: list[dict[int, State]] = [{} for _ in range(len(self.segment.steps) + 1)]
        layers[first.done.bit_count()][first.done] = first
        for layer in layers:
            for state in nsmallest(width, layer.values()):
                if state.done == self.segment.full:
                    self.accept(state)
                    return True
                for following in self.successors(state):
                    layers[following.done.bit_count()].setdefault(following.done, following)
            layer.clear()
        return False


def search(segment: Segment, floor: int, allowed: int) -> int:
    """Improve the best order of a segment whose peak is above `floor`; returns the transitions tried."""
    attempt = OrderSearch(segment, floor, segment.peak, min(EXACT_WORK, allowed))
    try:
        attempt.exact()
        return attempt.work
    except OutOfWorkError:
        work = attempt.work
    for width in WIDTHS:
        lowest = floor
        while lowest < segment.peak:
            limit = (lowest + segment.peak) // 2
            attempt = OrderSearch(segment, limit, limit + 1, allowed - work)
            try:
                found = attempt.beam(width)
            except OutOfWorkError:
                return work + attempt.work
            work += attempt.work
            if not found:
                lowest = limit + 1
    return work
