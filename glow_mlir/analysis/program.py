"""Abstract programs of steps and buffers: memory of an order of steps, and Glow's two orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property

from glow_mlir.support.dataclass import dataclass

Order = list[int]
"""Step numbers, in an order that respects dependences."""


@dataclass(frozen=True)
class ScheduledStep:
    """One operation: its predecessors, and the buffers it uses."""

    before: tuple[int, ...] = ()
    """Predecessors: first those whose results it reads, in the order of its operands, then others."""
    writes: tuple[int, ...] = ()
    """Buffers it writes, wholly or in part."""
    reads: tuple[int, ...] = ()
    """Buffers it reads."""
    shares: tuple[tuple[int, int], ...] = ()
    """Pairs (written buffer, read buffer): the first may reuse the second if that dies here."""
    result_bytes: int = 0
    """Bytes of its results if each had its own buffer; Glow's order uses them."""
    is_view: bool = False
    """Whether its result aliases an operand, and it computes nothing."""


@dataclass(frozen=True)
class Program:
    """
    Steps without an order, and buffers of `sizes` bytes.

    A buffer lives from the first step that writes it to the last that writes or reads it, both included.
    """

    steps: Sequence[ScheduledStep]
    sizes: Sequence[int]
    roots: Sequence[int] = ()
    """Start steps of Glow's orders; empty for all steps without successors."""
    preferences: Sequence[tuple[int, int]] = field(default=())
    """Pairs of steps; unless the first comes before the second, the second needs more memory."""

    @cached_property
    def writers(self) -> list[list[int]]:
        """For each buffer, the steps that write it."""
        return _users(len(self.sizes), [step.writes for step in self.steps])

    @cached_property
    def users(self) -> list[list[int]]:
        """For each buffer, the steps that write or read it."""
        return _users(len(self.sizes), [tuple(dict.fromkeys((*step.writes, *step.reads))) for step in self.steps])

    @cached_property
    def after(self) -> list[list[int]]:
        """For each step, its successors."""
        waiting: list[list[int]] = [[] for _ in self.steps]
        for number, step in enumerate(self.steps):
            for earlier in dict.fromkeys(step.before):
                waiting[earlier].append(number)
        return waiting


def _users(buffers: int, uses: Sequence[Sequence[int]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(buffers)]
    for number, used in enumerate(uses):
        for buffer in used:
            found[buffer].append(number)
    return found


def peaks(program: Program, order: Sequence[int]) -> list[int]:
    """The live bytes during each step of `order`."""
    left = [len(users) for users in program.users]
    is_open = [False] * len(program.sizes)
    live = 0
    found: list[int] = []
    for number in order:
        step = program.steps[number]
        opening = [buffer for buffer in dict.fromkeys(step.writes) if not is_open[buffer]]
        used = dict.fromkeys((*step.writes, *step.reads))
        for buffer in used:
            left[buffer] -= 1
            is_open[buffer] = True
        closing = [buffer for buffer in used if not left[buffer]]
        live += sum(program.sizes[buffer] for buffer in opening)
        found.append(live - sum(shared_bytes(step, program.sizes, opening, closing)))
        live -= sum(program.sizes[buffer] for buffer in closing)
    return found


def shared_bytes(
    step: ScheduledStep, sizes: Sequence[int], opening: Iterable[int], closing: Iterable[int]
) -> Iterator[int]:
    """The bytes that `step` saves by computing in place: the sizes of opening buffers that reuse closing ones."""
    free, taken = set(opening), set(closing)
    for written, read in step.shares:
        if written in free and read in taken and sizes[written] <= sizes[read]:
            free.remove(written)
            taken.remove(read)
            yield sizes[written]


def peak(program: Program, order: Sequence[int]) -> int:
    """The peak of live bytes when the steps run in `order`."""
    return max(peaks(program, order), default=0)


def child_size_order(program: Program) -> Order:
    """
    Depth first from the roots; among the predecessors of a step, the one whose computation needs most memory beyond its
    results comes first (Glow's ChildMemSizeBased scheduler, after Sethi and Ullman).
    """
    surplus: list[int] = [0] * len(program.steps)
    for number in _forward(program):
        step = program.steps[number]
        highest = kept = 0
        for child in sorted(dict.fromkeys(step.before), key=lambda child: -surplus[child]):
            highest = max(highest, kept + surplus[child] + program.steps[child].result_bytes)
            kept += program.steps[child].result_bytes
        surplus[number] = max(highest, kept + step.result_bytes) - step.result_bytes
    return _depth_first(program, lambda child: -surplus[child])


def topological_order(program: Program) -> Order:
    """Depth first from the roots, operands in order (Glow's TopologicalSort scheduler)."""
    return _depth_first(program, lambda child: 0)


def _forward(program: Program) -> Order:
    """Any valid order of all steps."""
    missing = [len(set(step.before)) for step in program.steps]
    order = [number for number, count in enumerate(missing) if not count]
    for number in order:
        for waiting in program.after[number]:
            missing[waiting] -= 1
            if not missing[waiting]:
                order.append(waiting)
    return order


def _depth_first(program: Program, rank: Callable[[int], int]) -> Order:
    """Finish one child before the next begins; children of the lowest rank come first."""
    order: Order = []
    done = [False] * len(program.steps)
    ends = (number for number, after in enumerate(program.after) if not after)
    stack = [(root, False) for root in reversed([*program.roots, *ends])]
    while stack:
        number, is_ready = stack.pop()
        if done[number]:
            continue
        if is_ready:
            done[number] = True
            order.append(number)
            continue
        stack.append((number, True))
        children = [child for child in dict.fromkeys(program.steps[number].before) if not done[child]]
        stack += [(child, False) for child in sorted(children, key=rank)[::-1]]
    return order
