"""
A program that computes values again rather than keep them: for networks that are differentiated, whose way there saves
what the way back reads.

Where most bytes lie between two steps that were read and are read again, a program turns. What lies in front is cut
into a chain of stages, where few bytes are read by what follows; steps behind it belong to the way back through the
last stage whose values they read. What each stage saves is chosen by `Plans`, which are exact for a chain of operators;
where values skip stages, their bytes are counted in each of these.
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
"""The most stages of a chain."""

MAX_READ = 0.75
"""The share of the bytes of a stage behind whose last readers its way back is over: some are read at the very end."""

ATTEMPTS = 10
"""Plans that are tried, since what a plan takes is known when it is carried out."""


class Copy(NamedTuple):
    """A step that runs: its number in the program, the run of its stage, and where in the list those stand it reads."""

    step: int
    run: int
    reads: dict[int, int]


@dataclass
class Chain:
    """A program, whose steps are in order, as a chain of stages that is walked there and back."""

    program: Program
    work: Sequence[float]
    """How long each step takes."""
    is_repeatable: Sequence[bool]
    """Whether a step may run again."""

    def __post_init__(self) -> None:
        users = self.program.users
        self.first = [min(found, default=0) for found in users]
        self.last = [max(found, default=-1) for found in users]
        crossing = self._live((sorted(found)[1] + 1, max(found)) if found[1:] else (1, 0) for found in users)
        self.turn = max(range(len(crossing)), key=crossing.__getitem__, default=0)
        self.last_there = [max((user for user in found if user < self.turn), default=-1) for found in users]
        self.ends = self._cuts()
        """Where each stage ends."""

    def _live(self, spans: Iterator[tuple[int, int]], chosen: Sequence[bool] | None = None) -> list[int]:
        """For each step the bytes of the buffers in whose span, both ends included, it lies."""
        change = [0] * (len(self.program.steps) + 1)
        for buffer, (first, last) in enumerate(spans):
            if first <= last and (chosen is None or chosen[buffer]):
                change[first] += self.program.sizes[buffer]
                change[last + 1] -= self.program.sizes[buffer]
        return list(accumulate(change))[:-1]

    @cached_property
    def _passed(self) -> list[int]:
        """For each step in front of the turn, the bytes from steps before it that are read there from it on."""
        spans = ((first + 1, last) for first, last in zip(self.first, self.last_there, strict=True))
        return self._live(spans)[: self.turn]

    def _cuts(self) -> list[int]:
        """Where stages end: as many bytes are saved in each, about, and few are read behind it."""
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
        """The stage of a step in front of the turn."""
        return bisect_right(self.ends, step)

    @cached_property
    def ways_back(self) -> list[int]:
        """For each stage, where its way back begins: where most of what the stage behind it saves was read last."""
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
            own = [place == number for place in inside]
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
        """The steps in the order of a plan, with what is computed again; nothing whose result nothing reads."""
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
        """Whether a step has a result among the activations, and may run again."""
        return self.is_repeatable[number] and bool(self.program.steps[number].writes)


def _reached(found: Sequence[tuple[int, int]], default: int) -> int:
    """Where most bytes were passed, of positions with bytes in order."""
    sums = list(accumulate(size for _, size in found))
    return found[bisect_left(sums, sums[-1] * MAX_READ)][0] if sums else default


def _read(copies: list[Copy]) -> list[Copy]:
    """Copies without those of a second run whose results nothing reads, at the places that they then have."""
    is_read = [copy.run == 0 for copy in copies]
    for position in reversed(range(len(copies))):
        if is_read[position]:
            for place in copies[position].reads.values():
                is_read[place] = True
    places = list(accumulate(is_read, initial=0))
    return [
        Copy(copy.step, copy.run, {step: places[place] for step, place in copy.reads.items()})
        for copy, kept in zip(copies, is_read, strict=True)
        if kept
    ]


def early_order(program: Program, is_given: Sequence[bool]) -> Order:
    """
    The order of a program, but that steps that free as much memory as they take run as soon as they can, and those that
    depend on nothing that `is_given` with a call just before the first that waits for them.

    So a gradient makes room when it is there, where all parameters are updated at the end.
    """
    return _EarlyOrder(program, is_given).order


class _EarlyOrder:
    """Finds an early order."""

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
        """Whether a step frees as much as it takes."""
        step, sizes = self.program.steps[number], self.program.sizes
        takes = sum(sizes[buffer] for buffer in step.writes if buffer not in self._opened)
        return takes <= sum(sizes[buffer] for buffer in {*step.writes, *step.reads} if self._left[buffer] == 1)

    def _run(self, number: int) -> None:
        """Run a step behind what it still waits for."""
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
    """The program that runs copies, in their order; what each run of a stage computes is in buffers of its own."""
    sizes, made = list(program.sizes), dict[tuple[int, int], int]()
    steps: list[ScheduledStep] = []
    written: list[dict[int, int]] = []
    """For each copy, in which buffers it has what the step writes into those of the program."""

    def of(buffer: int, run: int) -> int:
        if run == 0:
            return buffer
        if (buffer, run) not in made:
            made[buffer, run] = len(sizes)
            sizes.append(program.sizes[buffer])
        return made[buffer, run]

    for copy in copies:
        step = program.steps[copy.step]
        found = {buffer: place for at in copy.reads.values() for buffer, place in written[at].items()}
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
    The steps of a program, some of them again, such that at most `memory` bytes are live at once; and how many are.

    It is the one of least work among those that were tried; where none needs so little, the one that needs least.
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
    """What is better: less work in the memory; else less memory."""
    return max(needed - memory, 0), work
