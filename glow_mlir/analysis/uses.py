"""Which instructions of a block read and write each allocation and weight, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp, root_of


@dataclass
class Uses:
    """The instructions that use one allocation or weight, in order; one that reads and writes it is in both lists."""

    readers: list[Instruction] = field(default_factory=list[Instruction])
    writers: list[Instruction] = field(default_factory=list[Instruction])


class BlockUses:
    """The uses of every allocation and weight in a block, and the position of every op."""

    def __init__(self, block: Block) -> None:
        self.positions: dict[Operation, int] = {}
        self._uses: dict[SSAValue, Uses] = {}
        self._deallocations: dict[SSAValue, DeallocOp] = {}
        for position, op in enumerate(block.ops):
            self.positions[op] = position
            if isinstance(op, DeallocOp):
                self._deallocations[op.buffer] = op
            elif isinstance(op, Instruction):
                self.add(op)

    def of(self, root: SSAValue) -> Uses:
        """The uses of an allocation or weight."""
        return self._uses.setdefault(root, Uses())

    def add(self, op: Instruction) -> None:
        """Take in the operands of an instruction; it must come behind those taken in before, or use other buffers."""
        for qualifier, value in op.uses():
            uses = self.of(root_of(value))
            if qualifier.reads:
                uses.readers.append(op)
            if qualifier.writes:
                uses.writers.append(op)

    def replace(self, old: Instruction, roots: Iterable[SSAValue], new: Instruction) -> None:
        """Let `new` use those allocations and weights where `old` did."""
        for root in roots:
            uses = self.of(root)
            uses.readers = [new if op is old else op for op in uses.readers]
            uses.writers = [new if op is old else op for op in uses.writers]

    def any_between(self, ops: Iterable[Operation], first: Operation, last: Operation) -> bool:
        """Whether one of `ops` is at `first` or behind it, but before `last`."""
        begin, end = self.positions[first], self.positions[last]
        return any(begin <= self.positions[op] < end for op in ops)

    def hoist(self, root: SSAValue, anchor: Operation) -> None:
        """Move the declaration of a buffer in front of `anchor`, unless it is there already."""
        owner, block = root.owner, anchor.parent_block()
        assert isinstance(owner, Operation)
        assert block is not None
        if self.positions[owner] > self.positions[anchor]:
            owner.detach()
            block.insert_op_before(owner, anchor)
            self.positions[owner] = self.positions[anchor]

    def keep_until(self, values: Iterable[SSAValue], last: Operation) -> None:
        """Move the deallocations of the buffers behind `values` that come before `last` behind it."""
        block = last.parent_block()
        assert block is not None
        for root in dict.fromkeys(map(root_of, values)):
            free = self._deallocations.get(root)
            if free is not None and self.positions[free] < self.positions[last]:
                free.detach()
                block.insert_op_after(free, last)
                self.positions[free] = self.positions[last]
