"""Runs: elementwise instructions that become one stack, and cached facts about their buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain

from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.analysis.accesses import each_user
from glow_mlir.analysis.cost import is_profitable
from glow_mlir.analysis.regions import Region, region_of, regions_overlap
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import are_alike, motion_of
from glow_mlir.dialects.glow_low.memory import AllocOp, byte_size, root_of
from glow_mlir.dialects.shapes import bytes_of, sizes_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

MAX_MEMBERS = 128
"""Maximum number of instructions in one stack; a longer run is split to bound the size of its code."""

MAX_BUFFERS = 64
"""Buffers that the members of one stack read from outside or write (Glow's kArgLimit)."""


@dataclass(frozen=True, eq=False)
class BufferKey:
    """
    The allocation or weight, type and motion of a buffer: values with equal ones denote the same buffer.

    `Buffers` interns these, so that they compare by identity: hashing types is slow.
    """

    root: SSAValue
    type: Attribute
    motion: frozenset[tuple[SSAValue, int]]


Use = tuple[SSAValue, bool]
"""A buffer, and whether it is written."""


def splat_behind(value: SSAValue, splats: Mapping[SSAValue, Operation]) -> Operation | None:
    """The splat that is the only writer of the buffer `value`, or `None`."""
    root = root_of(value)
    return None if bytes_of(root) < bytes_of(value) else splats.get(root)


class Buffers:
    """Cached queries about buffers; answers stay valid because the types of buffers do not change."""

    def __init__(self) -> None:
        self._buffer_keys: dict[SSAValue, BufferKey] = {}
        self._made: dict[tuple[SSAValue, Attribute, frozenset[tuple[SSAValue, int]]], BufferKey] = {}
        self._regions: dict[SSAValue, Region] = {}

    def buffer_key(self, value: SSAValue) -> BufferKey:
        """The interned `BufferKey` of a buffer."""
        found = self._buffer_keys.get(value)
        if found is None:
            key = root_of(value), value.type, frozenset(motion_of(value).items())
            found = self._buffer_keys[value] = self._made.setdefault(key, BufferKey(*key))
        return found

    def region(self, value: SSAValue) -> Region:
        """The region of memory that a buffer covers."""
        found = self._regions.get(value)
        if found is None:
            found = self._regions[value] = region_of(value)
        return found

    def meet(self, one: SSAValue, other: SSAValue) -> bool:
        """Whether two buffers of one allocation overlap."""
        return regions_overlap(self.region(one), self.region(other))


@dataclass(eq=False)
class ElementwiseRun:
    """
    Elementwise instructions over one index space; `splats` has the known contents of the block.

    Each member is stored with its time: the number of instructions before it. No instruction between the members
    prevents moving all of them to the last one.
    """

    block: Block
    """The block of the members."""
    space: Sizes
    splats: Mapping[SSAValue, Operation]
    buffers: Buffers = field(default_factory=Buffers)
    members: list[tuple[int, DerivedInstruction]] = field(default_factory=list[tuple[int, DerivedInstruction]])
    sources: dict[BufferKey, SSAValue] = field(default_factory=dict["BufferKey", SSAValue])
    """The buffers that the members read from outside the run, in order."""
    written: dict[BufferKey, SSAValue] = field(default_factory=dict["BufferKey", SSAValue])
    """The buffers that the members write, in order."""
    touched: dict[SSAValue, list[Use]] = field(default_factory=dict[SSAValue, list["Use"]])
    """Allocation or weight → how the members use it."""

    @property
    def last(self) -> int:
        """The time of the last member."""
        return self.members[-1][0]

    def accepts(self, op: DerivedInstruction, time: int, most: int) -> bool:
        """Whether `op` may join, and the cost model approves (`is_profitable`)."""
        return (
            sizes_of(op.outputs()[0]) == self.space
            and len(self.members) < most
            and len(self.sources) + len(self.written) + len(op.operands) <= MAX_BUFFERS
            and is_profitable(self.saved_bytes(op))
            and self._is_even(op)
            and (time == self.last + 1 or self._may_wait())
        )

    def may_grow(self, most: int) -> bool:
        """Whether instructions other than the next one may still join; once false, this stays false."""
        # A new member reads at least one buffer and writes one.
        has_capacity = len(self.members) < most and len(self.sources) + len(self.written) + 2 <= MAX_BUFFERS
        return has_capacity and self._may_wait()

    def saved_bytes(self, op: DerivedInstruction) -> int:
        """The bytes of memory traffic saved if `op` joins: loads of buffers that the run loads or has written."""
        buffer_keys = [(self.buffers.buffer_key(value), byte_size(value)) for value in op.inputs()]
        return sum(
            size * ((buffer_key in self.written) + (buffer_key in self.written or buffer_key in self.sources))
            for buffer_key, size in buffer_keys
        )

    def _is_even(self, op: DerivedInstruction) -> bool:
        """Whether `op` accesses buffers that the run wrote, and overwrites buffers that it read, only elementwise."""
        output = op.outputs()[0]
        for value in (*op.inputs(), output):
            for other, written in self.touched.get(root_of(value), ()):
                apart = are_alike(other, value) if written or value is output else True
                if not apart and self.buffers.meet(other, value):
                    return False
        return True

    def _may_wait(self) -> bool:
        """Whether delaying the run needs no more memory: the buffers it reads are not larger than those it stores."""
        read = sum(byte_size(value) for value in self.sources.values() if isinstance(root_of(value).owner, AllocOp))
        return read <= sum(map(byte_size, self.targets()))

    def conflicts(self, uses: Iterable[Use]) -> bool:
        """Whether an instruction with these uses must come after the members."""
        return any(
            (writes or written) and self.buffers.meet(other, value)
            for value, writes in uses
            for other, written in self.touched.get(root_of(value), ())
        )

    def add(self, time: int, op: DerivedInstruction) -> tuple[list[Use], list[BufferKey]]:
        """
        Append `op`; its inputs are sources of the run unless an earlier member wrote them.

        Returns the uses of `op`, and the places of its buffers that the run writes or reads from outside.
        """
        for value in op.inputs():
            if self.buffers.buffer_key(value) not in self.written and splat_behind(value, self.splats) is None:
                self.sources.setdefault(self.buffers.buffer_key(value), value)
        output = op.outputs()[0]
        self.written.setdefault(self.buffers.buffer_key(output), output)
        self.members.append((time, op))
        uses = [*((value, False) for value in op.inputs()), (output, True)]
        for value, writes in uses:
            self.touched.setdefault(root_of(value), []).append((value, writes))
        buffer_keys = dict.fromkeys(self.buffers.buffer_key(value) for value, _ in uses)
        return uses, [
            buffer_key for buffer_key in buffer_keys if buffer_key in self.written or buffer_key in self.sources
        ]

    def uses(self) -> Iterator[Use]:
        """All uses of buffers by members."""
        return chain.from_iterable(self.touched.values())

    def targets(self) -> list[SSAValue]:
        """The buffers that the run must store: those with other users, or used by the members when they run again."""
        members = {op for _, op in self.members}
        return [
            value
            for buffer_key, value in self.written.items()
            if not isinstance(buffer_key.root.owner, AllocOp)
            or buffer_key.root.owner.parent is not self.block
            or any(user not in members for user in each_user(buffer_key.root))
        ]


def merged(runs: Sequence[ElementwiseRun], most: int) -> ElementwiseRun | None:
    """Merge several runs into one; `None` if it would exceed the limits."""
    first = runs[0]
    if len(runs) == 1:
        return first
    buffers = sum(len(run.sources) + len(run.written) for run in runs)
    if sum(len(run.members) for run in runs) >= most or buffers >= MAX_BUFFERS:
        return None
    union = ElementwiseRun(first.block, first.space, first.splats, first.buffers)
    for time, op in sorted((item for run in runs for item in run.members), key=lambda item: item[0]):
        union.add(time, op)
    return union
