"""`fuse-epilogues`: fuse a stack into the instruction in front of it, which applies it to results in registers."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.analysis.cost import is_profitable
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import AllocOp, byte_size, offset_of, root_of
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.ir.rewriting import erase_unused
from glow_mlir.rewriting.body_fusion import Fusion, fuse_stacks
from glow_mlir.rewriting.buffers import keep_until
from glow_mlir.rewriting.epilogue_operands import body_with_first, own_strides, steps_over
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class FuseEpiloguesPass(ModulePass):
    """
    Make a stack the epilogue of the instruction whose result only it reads, if the backend executes that.

    Results then pass through the body in registers: a bias, an activation or a residual sum costs no pass over memory
    of its own. Of several such producers the last one takes the stack, since the results of the others are available by
    then; if another source is computed later still, the producer is moved behind it.
    """

    name = "fuse-epilogues"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fuse_stacks(op, EpilogueFusion)


@dataclass(frozen=True)
class EpilogueFusion(Fusion):
    """The fusion of one stack with its producer."""

    def run(self) -> None:
        found = [(op, value) for value in self.stack.sources if (op := self._producer(value)) is not None]
        for producer, value in sorted(found, key=lambda item: -self.accesses.positions[item[0]]):
            if not is_profitable(2 * byte_size(value)):
                continue
            if self._is_ready(producer, value):
                fused = self._move(producer, value)
            else:
                fused = self._may_wait(producer) and self._move_late(producer, value)
            if fused:
                return

    def _producer(self, value: SSAValue) -> DerivedInstruction | None:
        """The only writer of a source of the stack, if the stack is its only reader, elementwise."""
        root = root_of(value)
        if not self._is_own(root) or (producer := self._only_writer(value)) is None:
            return None
        if not isinstance(producer, DerivedInstruction) or producer.epilogue is not None:
            return None
        if producer not in self.accesses.positions:  # Inside a loop, it writes slices of the result.
            return None
        results = producer.outputs()
        if (
            not results
            or moves_of(results[0])
            or root_of(results[0]) is not root
            or offset_of(results[0]) != offset_of(value)
        ):
            return None
        steps = steps_over(self.stack, value, sizes_of(results[0]))
        return producer if steps is not None and steps == own_strides(results[0]) else None

    def _only_writer(self, value: SSAValue) -> Operation | None:
        """The only writer of a source that only the stack reads, once; `None` if there are other accesses."""
        writers: list[Operation] = []
        reads = 0
        for access in self.accesses.each_meeting(value):
            reads += access.reads
            writers += [access.op] if access.writes else []
            if len(writers) > 1 or reads > 1 or (access.reads and access.op is not self.stack):
                return None
        return writers[0] if writers and reads else None

    def _is_own(self, root: SSAValue) -> bool:
        """Whether a buffer is an allocation of the block, without accesses outside."""
        return isinstance(root.owner, AllocOp) and self.accesses.is_local(root)

    def _is_ready(self, producer: DerivedInstruction, value: SSAValue) -> bool:
        """Whether the stack could run in place of the producer: its sources are available, its targets free."""
        first, last = self.accesses.positions[producer], self.accesses.positions[self.stack]
        return not (
            any(self.accesses.is_met(v, first, last - 1, writes=True) for v in self.stack.sources if v is not value)
            or any(self.accesses.is_met(target, first, last - 1) for target in self.stack.targets)
        )

    def _may_wait(self, producer: DerivedInstruction) -> bool:
        """
        Whether the producer could run in place of the stack: nothing between overwrites its inputs, or accesses another
        of its results.
        """
        first, last = self.accesses.positions[producer], self.accesses.positions[self.stack]
        return not (
            any(self.accesses.is_met(value, first + 1, last, writes=True) for value in producer.inputs())
            or any(self.accesses.is_met(value, first + 1, last) for value in producer.outputs()[1:])
        )

    def _move_late(self, producer: DerivedInstruction, value: SSAValue) -> bool:
        """Like `_move`, with the producer moved in front of the stack."""
        following, position = producer.next_op, self.accesses.positions[producer]
        assert following is not None
        self._place(producer, self.stack, self.accesses.positions[self.stack])
        if self._move(producer, value):
            keep_until(self.accesses, producer.inputs(), producer)
            return True
        self._place(producer, following, position)
        return False

    def _place(self, producer: DerivedInstruction, before: Operation, position: int) -> None:
        block = before.parent_block()
        assert block is not None
        self.accesses.forget(producer)
        producer.detach()
        block.insert_op_before(producer, before)
        self.accesses.positions[producer] = position
        self.accesses.add(producer)

    def _move(self, producer: DerivedInstruction, value: SSAValue) -> bool:
        """Make the stack the epilogue of `producer`; false if its operands do not fit, or the backend refuses."""
        result, stack = producer.outputs()[0], self.stack
        sizes = sizes_of(result)
        first = steps_over(stack, stack.targets[0], sizes)
        if first is None or any(size != 1 and not step for size, step in zip(sizes, first, strict=True)):
            return False
        further = [*stack.targets, *(source for source in stack.sources if source is not value)]
        extras = self.extras(further, sizes, producer)
        if extras is None:
            return False
        count, body = len(stack.targets), body_with_first(stack, value)
        self.accesses.forget(producer)
        producer.attach_epilogue(
            extras.buffers[0], extras.buffers[1:count], extras.buffers[count:], extras.maps[1:], body
        )
        is_kept = self.backend.can_fuse(producer, self.storage, self.target)
        if not is_kept:
            producer.detach_epilogue(result)
        self.accesses.add(producer)
        if is_kept:
            self.finish(producer, True, "stacks turned into epilogues")
        else:
            erase_unused(extras.buffers)
        return is_kept
