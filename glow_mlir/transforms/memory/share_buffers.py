"""`share-buffers`: let results reuse the buffers of operands that die."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeGuard, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.accesses import Access, Accesses, may_be_same_buffer
from glow_mlir.analysis.regions import may_overlap, region_of, regions_overlap
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import AllocOp, Buffer, DeallocOp, FuncOp, ViewOp, WeightOp, byte_size, root_of
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.rewriting.buffers import erase_with_views, hoist_declaration, join_lives, view_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ShareBuffersPass(ModulePass):
    """
    Let an instruction write its result over an operand that dies there, if it may work in place (Glow's ShareBuffers,
    the paper's §3.3 on @inout).

    Both allocations have the same size, so that peak memory never grows: two lifetimes that met at the instruction
    become one. A result that only leads from the old value of state to the new one is written over the state itself.
    An operand that dies where an operator would copy it to an output, which is written for the first time, lies in that
    output from its beginning on.
    """

    name = "share-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            for block in blocks(function):
                Sharing(block, Accesses.of(block)).run()


@dataclass(frozen=True)
class Sharing:
    """Buffer sharing in one block."""

    block: Block
    accesses: Accesses

    def run(self) -> None:
        """Visit instructions in order, so that a chain of them ends up in one buffer, and that maybe in state."""
        for share in (self._share, self._share_state):
            for op in list(own_operations(self.block)):
                if isinstance(op, Instruction) and not isinstance(op, DeallocOp):
                    for output, value in enumerate(op.operands):
                        if self._begins_at(op, root_of(value)):
                            share(op, output)
        for op in list(own_operations(self.block)):
            if copies_operand(op) and isinstance(self.block.parent_op(), FuncOp):
                for output, value in enumerate(op.operands):
                    if isinstance(value.owner, WeightOp) and self.accesses.to(value)[0].op is op:
                        self._share_output(op, output)

    def _is_own(self, root: SSAValue) -> bool:
        """Whether a buffer is an allocation of the block, without accesses outside."""
        return isinstance(root.owner, AllocOp) and self.accesses.is_local(root)

    def _begins_at(self, op: Instruction, root: SSAValue) -> bool:
        """Whether `op` has the first access to an allocation."""
        return self._is_own(root) and self.accesses.to(root)[0].op is op

    def _ends_at(self, op: Instruction, root: SSAValue) -> bool:
        """Whether `op` has the last access to an allocation."""
        return self._is_own(root) and self.accesses.to(root)[-1].op is op

    def _share(self, op: Instruction, output: int) -> None:
        """Let an @out operand, whose allocation begins here, reuse the buffer of an operand that dies."""
        begins = root_of(op.operands[output])
        for input_, value in enumerate(op.operands):
            dies = root_of(value)
            fits = dies is not begins and self._ends_at(op, dies) and are_as_large(dies, begins)
            if fits and can_take(op, output, input_) and _agree(op, (output, input_)):
                self._merge(begins, dies)
                return

    def _share_state(self, op: Instruction, output: int) -> None:
        """
        Let an @out operand, whose allocation begins here, be the state that another operand is, if that is not used
        until an instruction overwrites it as the last one that uses the allocation.
        """
        begins, uses = op.operands[output], self.accesses.to(root_of(op.operands[output]))
        if begins is not root_of(begins):
            return
        for input_, state in enumerate(op.operands):
            declared = isinstance(state.owner, WeightOp) and state.owner.mutable is not None
            if declared and state.type == begins.type and can_take(op, output, input_):
                if self._is_overwritten(state, op, uses):
                    hoist_declaration(self.block, self.accesses, state, op)
                    begins.replace_all_uses_with(state)
                    self.accesses.move(begins, state)
                    join_lives(self.block, self.accesses, state, begins)
                    erase_with_views(begins)
                    statistics.count("buffers shared")
                    return

    def _share_output(self, op: Instruction, output: int) -> None:
        """Let an operand that dies lie in the storage that is written here for the first time, and is not read."""
        target = op.operands[output]
        if not self.accesses.to(target)[0].writes or self.accesses.to(target)[0].reads:
            return
        for input_, dies in enumerate(op.operands):
            fits = dies is root_of(dies) and dies.type == target.type and self._ends_at(op, dies)
            if fits and can_take(op, output, input_) and _agree(op, (output, input_)):
                hoist_declaration(self.block, self.accesses, target, self.accesses.to(dies)[0].op)
                dies.replace_all_uses_with(target)
                self.accesses.move(dies, target)
                join_lives(self.block, self.accesses, target, dies)
                erase_with_views(dies)
                statistics.count("buffers shared")
                return

    def _is_overwritten(self, state: SSAValue, first: Instruction, uses: Sequence[Access]) -> bool:
        """Whether, after `first`, the last user of an allocation is the next one of a state, and overwrites it."""
        last, begin = uses[-1].op, self.accesses.positions[first]
        between = [other for other in self.accesses.to(state) if begin < other.position <= uses[-1].position]
        if not isinstance(last, Instruction) or last is first or not between:
            return False
        if any(other.op is not last or other.value is not state or not other.writes for other in between):
            return False
        reads = [access.index for access in uses if access.op is last]
        return all(may_be_same_buffer(last, other.index, read) for other in between for read in reads)

    def _merge(self, gone: SSAValue, root: SSAValue) -> None:
        """Merge two allocations into one; the lifetime of `gone` begins where that of `root` ends."""
        assert isinstance(gone.owner, AllocOp)
        hoist_declaration(self.block, self.accesses, root, gone.owner)
        for use in list(gone.uses):
            if isinstance(use.operation, ViewOp):
                use.operation.operands[use.index] = root
        if any(not isinstance(use.operation, DeallocOp) for use in gone.uses):
            whole = view_of(root, cast(Buffer, gone.type), gone)
            if isinstance(whole.owner, ViewOp):
                self.block.insert_op_before(whole.owner, gone.owner)
            for use in list(gone.uses):
                if not isinstance(use.operation, DeallocOp):
                    use.operation.operands[use.index] = whole
        self.accesses.move(gone, root)
        join_lives(self.block, self.accesses, root, gone)
        erase_with_views(gone)
        statistics.count("buffers shared")


def copies_operand(op: Operation) -> TypeGuard[Instruction]:
    """Whether an instruction changes some elements of an operand, and copies the others unless it works in place."""
    return isinstance(op, DerivedInstruction) and bool(op.OPERATOR.INPLACE) and not issubclass(op.OPERATOR, Elementwise)


def are_as_large(one: SSAValue, other: SSAValue) -> bool:
    """Whether two allocations take equal bytes; with symbols, only equal types guarantee that for all values."""
    if has_static_shape(one) and has_static_shape(other):
        return byte_size(one) == byte_size(other)
    return one.type == other.type


def _agree(op: Instruction, chosen: tuple[int, int]) -> bool:
    """Whether all other operands of the two allocations are disjoint once merged, or may be the same buffer."""
    begins, dies = (root_of(op.operands[index]) for index in chosen)
    roots = [root_of(value) for value in op.operands]
    for pair in product(range(len(roots)), repeat=2):
        one, other = pair
        if pair == chosen or roots[one] is not begins or roots[other] is not dies:
            continue
        regions = [region_of(op.operands[index].type) for index in pair]
        if regions_overlap(*regions) and not (regions[0] == regions[1] and may_be_same_buffer(op, one, other)):
            return False
    return True


def can_take(op: Instruction, output: int, input_: int) -> bool:
    """Whether an @out operand may reuse the buffer of an @in operand, whatever else the instruction uses."""
    if not may_be_same_buffer(op, output, input_):
        return False
    shared = op.operands[input_]
    others = [index for index in range(len(op.operands)) if index not in (output, input_)]
    return all(may_be_same_buffer(op, output, index) for index in others if may_overlap(op.operands[index], shared))
