"""
Orders of steps that minimize peak memory.

The method is that of Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge
Devices" (MLSys 2020): the graph is cut at steps that are ordered with respect to all others, and each segment is
searched over sets of completed steps. Steps without cost run at once, and only segments that determine the peak are
searched: chains and ordinary networks take linear time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glow_mlir.analysis.order_search import Buffers, Segment, search
from glow_mlir.analysis.program import Order, Program, ScheduledStep, child_size_order, peaks, topological_order

WINDOW = 32
"""Number of steps searched at once in a segment that is too long."""

WORK = 100_000
"""Maximum number of transitions over all segments of one program; other segments keep the best order known."""


def least_memory_order(program: Program) -> Order:
    """
    An order whose peak is at most that of Glow's orders and of the given one; optimal for small segments.

    Among equal peaks, Glow's child-size order wins, which keeps consumers close to producers.
    """
    favourite = child_size_order(program)
    program = with_preferences(program, favourite)
    groups = Groups(program, favourite)
    orders = [groups.order, groups.order_like(topological_order(program)), groups.order_like(range(len(program.steps)))]
    segments = split(groups.program, [order for order in orders if is_order(groups.program, order)])
    work = improve(segments)
    order = [number for segment in segments for number in segment.best_order()]
    deciding = max(segments, key=lambda segment: segment.peak, default=None)
    if deciding is not None and len(deciding.steps) > WINDOW:
        improve_windows(groups.program, order, max(segment.bound for segment in segments), work)
    return groups.unfold(order)


def with_preferences(program: Program, order: Order) -> Program:
    """Turn the preferences that `order` respects into dependences of `program`; together they have no cycle."""
    offset = {number: position for position, number in enumerate(order)}
    steps = list(program.steps)
    for first, second in program.preferences:
        if offset[first] < offset[second] and first not in steps[second].before:
            steps[second] = replace(steps[second], before=(*steps[second].before, first))
    return replace(program, steps=steps)


def is_order(program: Program, order: Sequence[int]) -> bool:
    """Whether `order` respects all dependences."""
    offset = {number: position for position, number in enumerate(order)}
    return all(offset[earlier] < offset[number] for number in order for earlier in program.steps[number].before)


class Groups:
    """
    Groups of steps that are consecutive in every order: a step joins the only group it depends on if it writes the same
    buffers, which takes no memory. Steps without operands and buffers come before their first use.
    """

    def __init__(self, program: Program, favourite: Order) -> None:
        self.source = program
        self.members: list[list[int]] = []
        self.group: dict[int, int] = {}
        self.free = {n for n, step in enumerate(program.steps) if not (step.before or step.writes or step.reads)}
        self.free = {n for n in self.free if program.after[n]}
        written: list[set[int]] = []
        for number in favourite:
            if number in self.free:
                continue
            step = program.steps[number]
            waits = {self.group[earlier] for earlier in step.before if earlier not in self.free}
            home = next(iter(waits)) if len(waits) == 1 else -1
            if home < 0 or not written[home].issuperset(step.writes):
                home = len(self.members)
                self.members.append([])
                written.append(set())
            self.group[number] = home
            self.members[home].append(number)
            written[home].update(step.writes)
        self.program = Program([self._merged(members) for members in self.members], program.sizes)
        self.order: Order = list(range(len(self.members)))

    def _merged(self, members: list[int]) -> ScheduledStep:
        steps = [self.source.steps[number] for number in members]
        before = [self.group[earlier] for step in steps for earlier in step.before if earlier not in self.free]
        home = self.group[members[0]]
        return ScheduledStep(
            before=tuple(dict.fromkeys(earlier for earlier in before if earlier != home)),
            writes=tuple(dict.fromkeys(buffer for step in steps for buffer in step.writes)),
            reads=tuple(dict.fromkeys(buffer for step in steps for buffer in step.reads)),
            shares=steps[0].shares,
        )

    def order_like(self, order: Sequence[int]) -> Order:
        """The groups in the order of their first members."""
        return list(dict.fromkeys(self.group[number] for number in order if number not in self.free))

    def unfold(self, order: Order) -> Order:
        """The steps in the order of their groups."""
        unfolded: dict[int, None] = {}
        for home in order:
            for number in self.members[home]:
                for earlier in self.source.steps[number].before:
                    unfolded.setdefault(earlier)
                unfolded[number] = None
        return list(unfolded)


def split(program: Program, orders: list[Order]) -> list[Segment]:
    """The segments of a program; each knows the best of `orders`, and prefers the first."""
    ends = cuts(program, orders[0])
    home = [0] * len(program.steps)
    for index, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        for number in orders[0][begin:end]:
            home[number] = index
    parts: list[list[Order]] = [[[] for _ in orders] for _ in ends]
    for which, order in enumerate(orders):
        for number in order:
            parts[home[number]][which].append(number)
    buffers = Buffers(program, home)
    live = buffers.live_at_entry(program.sizes, len(ends))
    return [Segment(program, known, live[index], buffers, index) for index, known in enumerate(parts)]


def cuts(program: Program, order: Order) -> list[int]:
    """The positions after steps that are ordered with respect to all others; the last is the end."""
    offset = {number: position for position, number in enumerate(order)}
    count = len(order)
    change = [0] * (count + 1)
    for position, number in enumerate(order):
        # A step ends each prefix up to its first successor: there is no cut in between.
        first = min((offset[later] for later in program.after[number]), default=count)
        change[position + 1] += 1
        change[first] -= 1
        # Likewise, it begins each suffix from its last predecessor on.
        last = max((offset[earlier] for earlier in program.steps[number].before), default=-1)
        change[last + 1] += 1
        change[position] -= 1
    found: list[int] = []
    waiting = 0
    for position in range(count):
        waiting += change[position]
        if not waiting or position == count - 1:
            found.append(position + 1)
    return found


def improve(segments: list[Segment]) -> int:
    """
    Search the segments that determine the peak, highest first, until one cannot be improved.

    Returns the remaining work.
    """
    floor = max((segment.bound for segment in segments), default=0)
    work = WORK
    for segment in sorted(segments, key=lambda segment: -segment.peak):
        if segment.peak <= floor or work <= 0:
            break
        work -= search(segment, floor, work // 2 if len(segment.steps) > WINDOW else work)
        floor = max(floor, segment.peak)
    return work


def improve_windows(program: Program, order: Order, floor: int, work: int) -> None:
    """Repeatedly search the steps around the peak, if a segment is too long to be searched as a whole."""
    while work > 0:
        costs = peaks(program, order)
        highest = max(costs)
        middle = costs.index(highest)
        begin = max(0, middle - WINDOW // 2)
        window = order[begin : begin + WINDOW]
        home = [2] * len(order)
        for position, number in enumerate(order[: begin + WINDOW]):
            home[number] = int(position >= begin)
        buffers = Buffers(program, home)
        segment = Segment(program, [window], buffers.live_at_entry(program.sizes, 3)[1], buffers, 1)
        work -= search(segment, floor, work)
        if segment.peak >= highest:
            return
        order[begin : begin + WINDOW] = segment.best_order()
