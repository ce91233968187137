"""
Rematerialization in differentiated programs, whose forward pass saves values for the backward pass.

The turning point lies between the two steps with the most bytes that were read and are read again. The steps in front
are cut into a chain of stages at points where few bytes are live; steps behind belong to the backward pass of the last
stage whose values they read. `Plans` selects the saved values; it is exact for a chain of operators. If values skip
stages, their bytes count in each of these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from glow_mlir.analysis.checkpointing import Action, Plan, Plans, Stage
from glow_mlir.analysis.program import Order, Program, ScheduledStep, peak
from glow_mlir.support.dataclass import dataclass

STAGES = 32
"""Maximum number of stages in a chain."""

MAX_READ = 0.75
"""
Share of a stage's bytes after whose last readers its backward pass counts as finished: some are read at the very end.
"""

ATTEMPTS = 10
"""Number of plans tried, since the memory of a plan is known only after it is carried out."""


class Copy(NamedTuple):
    """One execution of a step: its number, the run of its stage, and the list positions of its operands."""

    step: int
    run: int
    reads: dict[int, int]


@dataclass
class Chain:
    """A program, with its steps in order, as a chain of stages run forward and backward."""

    program: Program
    work: Sequence[float]
    """The time of each step."""
    is_repeatable: Sequence[bool]
    """Whether a step may be repeated."""

    def __post_init__(self) -> None:
        users = self.program.users
        self.first = [min(found, default=0) for found in users]
        self.last = [max(found, default=-1) for found in users]
        crossing = self._live((sorted(found)[1] + 1, max(found)) if found[1:] else (1, 0) for found in users)
        self.turn = max(range(len(crossing)), key=crossing.__getitem__, default=0)
        self.last_there = [max((user for user in found if user < self.turn), default=-1) for found in users]
        self.ends = self._cuts()
        """The end of each stage."""

    def _live(self, spans: Iterator[tuple[int, int]], chosen: Sequence[bool] | None = None) -> list[int]:
        """For each step, the bytes of the buffers live at it, both ends included."""
        change = [0] * (len(self.program.steps) + 1)
        for buffer, (first, last) in enumerate(spans):
            if first <= last and (chosen is None or chosen[buffer]):
                change[first] += self.program.sizes[buffer]
                change[last + 1] -= self.program.sizes[buffer]
        return list(accumulate(change))[:-1]

    @cached_property
    def _passed(self) -> list[int]:
        """For each step in front of the turning point, the bytes of earlier steps that are read from it on."""
        spans = ((first + 1, last) for first, last in zip(self.first, self.last_there, strict=True))
        return self._live(spans)[: self.turn]

    def _cuts(self) -> list[int]:
        """The ends of stages: each saves about equal bytes, and few are read after it."""
        saved = [0] * max(self.turn, 1)
        for buffer, size in enumerate(self.program.sizes):
            if self.first[buffer] < self.turn <= self.last[buffer]:
                saved[self.first[buffer]] += size
        sums, cuts, begin = list(accumulate(saved)), list[int](), 0
        for stage in range(1, STAGES):
            until = bisect_right(sums, sums[-1] * stage / STAGES)
            if until > begin:
                begin = min(range(begin + 1, until + 1), key=lambda at: (self._passed_at(at), -at))
                cuts.append(begin)
        return [*(cut for cut in cuts if cut < self.turn), self.turn]

    def _passed_at(self, position: int) -> int:
        return self._passed[position] if position < self.turn else 0

    def stage_of(self, step: int) -> int:
        """The stage of a step in front of the turning point."""
        return bisect_right(self.ends, step)

    @cached_property
    def ways_back(self) -> list[int]:
        """
        For each stage, the start of its backward pass: after the last read of most bytes that the next stage saves.
        """
        read: list[list[tuple[int, int]]] = [[] for _ in self.ends]
        for buffer, there in enumerate(self.last_there):
            if 0 <= there and self.last[buffer] >= self.turn:
                read[self.stage_of(there)].append((self.last[buffer] + 1, self.program.sizes[buffer]))
        ends = [_reached(sorted(found), self.turn) for found in read]
        return list(accumulate(reversed(ends), max, initial=self.turn))[-2::-1]

    @cached_property
    def stages(self) -> list[Stage]:
        """The stages with their sizes and work."""
        begins, turn = [0, *self.ends], self.turn
        inside = [self.stage_of(first) if first < turn else -1 for first in self.first]
        spans = list(zip(self.first, self.last, strict=True))
        back = self._live(iter(spans), [first >= turn for first in self.first])
        came = self._live(((first + 1, last) for first, last in spans), [first >= turn for first in self.first])
        found: list[Stage] = []
        for number, (begin, end) in enumerate(pairwise(begins)):
            own = [index == number for index in inside]
            kept = [
                is_own and (last >= turn or there >= end)
                for is_own, last, there in zip(own, self.last, self.last_there, strict=True)
            ]
            saved = sum(size for size, is_kept in zip(self.program.sizes, kept, strict=True) if is_kept)
            live = self._live(iter(spans), [is_own and not is_kept for is_own, is_kept in zip(own, kept, strict=True)])
            until = self.ways_back[number - 1] if number else len(self.program.steps)
            since = self.ways_back[number]
            found.append(
                Stage(
                    work=sum(self.work[begin:end]),
                    output=self._passed_at(end),
                    saved=saved,
                    forward=max(live[begin:end], default=0),
                    backward=max(back[since:until], default=0),
                    arriving=came[since] if since < len(came) else 0,
                )
            )
        return found

    def replayed(self, plan: Plan) -> list[Copy]:
        """The steps in the order of a plan, with recomputation; without steps whose results are not read."""
        begins = [0, *self.ends]
        current: dict[int, int] = {}
        found: list[Copy] = []

        def emit(numbers: Iterator[int] | range, run: int) -> None:
            for number in numbers:
                reads = {before: current[before] for before in self.program.steps[number].before}
                current[number] = len(found)
                found.append(Copy(number, run, reads))

        runs = 0
        for action, stage in plan:
            steps = range(begins[stage], begins[stage + 1])
            if action is Action.BACK:
                until = self.ways_back[stage - 1] if stage else len(self.program.steps)
                emit(range(max(self.ways_back[stage], self.turn), until), 0)
            elif begins[stage] in current:
                runs += 1
                emit((number for number in steps if self._takes_memory(number)), runs)
            else:
                emit(steps, 0)
        return _read(found)

    def _takes_memory(self, number: int) -> bool:
        """Whether a step has a result among the activations, and may be repeated."""
        return self.is_repeatable[number] and bool(self.program.steps[number].writes)


def _reached(found: Sequence[tuple[int, int]], default: int) -> int:
    """The position at which most bytes are passed."""
    sums = list(accumulate(size for _, size in found))
    return found[bisect_left(sums, sums[-1] * MAX_READ)][0] if sums else default


def _read(copies: list[Copy]) -> list[Copy]:
    """Remove repeated copies whose results are not read, and renumber the rest."""
    is_read = [copy.run == 0 for copy in copies]
    for position in reversed(range(len(copies))):
        if is_read[position]:
            for index in copies[position].reads.values():
                is_read[index] = True
    positions = list(accumulate(is_read, initial=0))
    return [
        Copy(copy.step, copy.run, {step: positions[index] for step, index in copy.reads.items()})
        for copy, kept in zip(copies, is_read, strict=True)
        if kept
    ]


def early_order(program: Program, is_given: Sequence[bool]) -> Order:
    """
    Reorder a program: steps that free at least as much memory as they take run as soon as possible, and steps that only
    depend on values `is_given` with a call run just before their first use.

    Gradients thus free memory early, even if all parameters are updated at the end.
    """
    return _EarlyOrder(program, is_given).order


class _EarlyOrder:
    """Computes an early order."""

    def __init__(self, program: Program, is_given: Sequence[bool]) -> None:
        self.program, self.order = program, list[int]()
        self._left = [len(users) for users in program.users]
        self._done, self._opened = [False] * len(program.steps), set[int]()
        self._ready: dict[int, None] = {}
        self._depends = list(is_given)
        for number, step in enumerate(program.steps):
            self._depends[number] = is_given[number] or any(self._depends[before] for before in step.before)
        self._missing = [{before for before in step.before if self._depends[before]} for step in program.steps]
        for first, second in program.preferences:
            if second not in program.steps[first].before and self._depends[first]:
                self._missing[second].add(first)
        self._waiting: list[list[int]] = [[] for _ in program.steps]
        for number, needed in enumerate(self._missing):
            for before in needed:
                self._waiting[before].append(number)
        self._find()

    def _find(self) -> None:
        for number in range(len(self.program.steps)):
            if self._done[number] or not (self._depends[number] or not self.program.after[number]):
                continue
            self._run(number)
            while (early := next((later for later in self._ready if self._frees(later)), None)) is not None:
                self._run(early)

    def _frees(self, number: int) -> bool:
        """Whether a step frees as much memory as it takes."""
        step, sizes = self.program.steps[number], self.program.sizes
        takes = sum(sizes[buffer] for buffer in step.writes if buffer not in self._opened)
        return takes <= sum(sizes[buffer] for buffer in {*step.writes, *step.reads} if self._left[buffer] == 1)

    def _run(self, number: int) -> None:
        """Run a step after its pending predecessors."""
        step = self.program.steps[number]
        for before in step.before:
            if not self._done[before]:
                self._run(before)
        self._done[number] = True
        self.order.append(number)
        self._ready.pop(number, None)
        self._opened.update(step.writes)
        for buffer in {*step.writes, *step.reads}:
            self._left[buffer] -= 1
        for later in self._waiting[number]:
            self._missing[later].discard(number)
            if not self._missing[later] and self._depends[later] and not self._done[later]:
                self._ready[later] = None


def program_of_copies(program: Program, copies: Sequence[Copy]) -> Program:
    """The program of copies, in order; each run of a stage has its own buffers."""
    sizes, made = list(program.sizes), dict[tuple[int, int], int]()
    steps: list[ScheduledStep] = []
    written: list[dict[int, int]] = []
    """For each copy, a map from the buffers that its step writes to those of the program."""

    def of(buffer: int, run: int) -> int:
        if run == 0:
            return buffer
        if (buffer, run) not in made:
            made[buffer, run] = len(sizes)
            sizes.append(program.sizes[buffer])
        return made[buffer, run]

    for copy in copies:
        step = program.steps[copy.step]
        found = {buffer: index for at in copy.reads.values() for buffer, index in written[at].items()}
        read = {buffer: found.get(buffer, buffer) for buffer in step.reads}
        stays = step.is_view or not copy.run
        own = {b: read[b] if stays and b in read else of(b, copy.run) for b in step.writes}
        shares = tuple((own[a], read[b]) for a, b in step.shares if a in own and b in read)
        writes, reads = tuple(own.values()), tuple(read.values())
        steps.append(replace(step, before=tuple(copy.reads.values()), writes=writes, reads=reads, shares=shares))
        written.append(own)
    return Program(steps, sizes)


def rematerialized(chain: Chain, memory: int) -> tuple[list[Copy], int]:
    """
    The steps of a program with recomputation, such that at most `memory` bytes are live at once; and the peak.

    The plan of least work among those tried; if none fits, the one of least memory.
    """
    order = list(range(len(chain.program.steps)))
    best = (peak(chain.program, order), 0.0, [Copy(n, 0, {b: b for b in chain.program.steps[n].before}) for n in order])
    most = sum(stage.saved for stage in chain.stages)
    plans, low, high = Plans(chain.stages, most), 0, most
    for _ in range(ATTEMPTS):
        tried = (low + high) // 2
        if (plan := plans.within(tried)) is None:
            low = tried
            continue
        copies = chain.replayed(plan)
        needed = peak(program_of_copies(chain.program, copies), range(len(copies)))
        work = sum(chain.work[copy.step] for copy in copies if copy.run)
        if _rank(needed, work, memory) < _rank(*best[:2], memory):
            best = (needed, work, copies)
        low, high = (tried, high) if needed <= memory else (low, tried)
    return best[2], best[0]


def _rank(needed: int, work: float, memory: int) -> tuple[int, float]:
    """The rank of a plan: least work within the memory, else least memory."""
    return max(needed - memory, 0), work
