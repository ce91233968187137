"""`fuse-prologues`: fuse a stack into the instruction behind it, which applies it to loaded elements."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import AllocOp, offset_of, root_of
from glow_mlir.dialects.shapes import element_of, has_static_shape, shape_of, sizes_of
from glow_mlir.ir.rewriting import erase_unused
from glow_mlir.rewriting.body_fusion import Fusion, fuse_stacks
from glow_mlir.rewriting.buffers import keep_until
from glow_mlir.rewriting.epilogue_operands import body_with_first, own_strides, steps_over
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class FuseProloguesPass(ModulePass):
    """
    Make a stack the prologue of the only instruction that reads its result, if the backend executes that.

    The instruction then reads the sources of the stack, and applies the body to each element. If it reads elements
    several times, the work is repeated: `glow_mlir.analysis.cost` decides whether that is faster.
    """

    name = "fuse-prologues"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fuse_stacks(op, PrologueFusion)


@dataclass(frozen=True)
class PrologueFusion(Fusion):
    """The fusion of one stack with its consumer."""

    def run(self) -> None:
        consumer = self._consumer()
        if consumer is None or not self._is_unchanged(consumer):
            return
        for source in self.stack.sources:
            if self._is_whole(source, consumer) and self._move(consumer, source):
                return

    def _consumer(self) -> DerivedInstruction | None:
        """
        The only reader of the stack's result, elementwise and as its first operand, if the stack is the only writer.
        """
        if len(self.stack.targets) != 1:
            return None
        (target,) = self.stack.targets
        root = root_of(target)
        if not isinstance(root.owner, AllocOp) or not self.accesses.is_local(root):
            return None
        meeting = self.accesses.meeting(target)
        writers = [access.op for access in meeting if access.writes]
        readers = [access.op for access in meeting if access.reads]
        if writers != [self.stack] or len(readers) != 1:
            return None
        (consumer,) = readers
        if not isinstance(consumer, DerivedInstruction) or consumer.prologue is not None or not consumer.inputs():
            return None
        if consumer not in self.accesses.positions:  # Inside a loop, it reads slices of the operand.
            return None
        first = consumer.inputs()[0]
        if not has_static_shape(first):  # The amount of repeated work is unknown.
            return None
        same = root_of(first) is root and not moves_of(first) and offset_of(first) == offset_of(target)
        steps = steps_over(self.stack, target, sizes_of(first)) if same else None
        return consumer if steps is not None and steps == own_strides(first) else None

    def _is_unchanged(self, consumer: Instruction) -> bool:
        """Whether the sources of the stack are unchanged at the consumer."""
        first, last = self.accesses.positions[self.stack], self.accesses.positions[consumer]
        return not any(self.accesses.is_met(source, first, last, writes=True) for source in self.stack.sources)

    def _is_whole(self, source: SSAValue, consumer: DerivedInstruction) -> bool:
        """Whether a source has a distinct element for each that the consumer reads, of the same type."""
        first = consumer.inputs()[0]
        steps = steps_over(self.stack, source, shape_of(first))
        if steps is None or element_of(source) != element_of(first):
            return False
        return all(size == 1 or step for size, step in zip(shape_of(first), steps, strict=True))

    def _move(self, consumer: DerivedInstruction, source: SSAValue) -> bool:
        """Make the stack the prologue of `consumer`; false if its operands do not fit, or the backend refuses."""
        first, stack = consumer.inputs()[0], self.stack
        further = [source, *(other for other in stack.sources if other is not source)]
        extras = self.extras(further, shape_of(first), consumer)
        if extras is None:
            return False
        self.accesses.forget(consumer)
        body = body_with_first(stack, source)
        consumer.attach_prologue(extras.buffers[0], extras.buffers[1:], extras.maps[1:], body)
        is_kept = self.backend.can_fuse(consumer, self.storage, self.target)
        if not is_kept:
            consumer.detach_prologue(first)
        self.accesses.add(consumer)
        if is_kept:
            self.finish(consumer, False, "stacks turned into prologues")
            keep_until(self.accesses, extras.buffers, consumer)
        else:
            erase_unused(extras.buffers)
        return is_kept
