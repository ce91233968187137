"""Shared by epilogue and prologue fusion: move a stack into the body of an instruction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.target import Target
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import fuse_locations, low_functions
from glow_mlir.ir.traversal import blocks, own_operations
from glow_mlir.rewriting.epilogue_operands import extra, has_plain_operands, steps_over
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes


@dataclass(frozen=True)
class ExtraOperands:
    """The additional operands of a body: buffers over an index space, and the map of each."""

    buffers: Sequence[SSAValue]
    maps: Sequence[AffineMap]


@dataclass(frozen=True)
class Fusion(ABC):
    """The fusion of one stack with an instruction."""

    stack: StackOp
    accesses: Accesses
    backend: Backend
    storage: Storage
    target: Target

    @abstractmethod
    def run(self) -> None:
        """Make the stack a body of an instruction, if one accepts it."""

    def extras(self, operands: Sequence[SSAValue], sizes: Sizes, op: DerivedInstruction) -> ExtraOperands | None:
        """Convert operands of the stack to operands of a body of `op` over `sizes`; `None` if strides are uneven."""
        steps = [steps_over(self.stack, operand, sizes) for operand in operands]
        if any(step is None for step in steps):
            return None
        pairs = zip(operands, steps, strict=True)
        found = [extra(operand, sizes, step, op, self.accesses) for operand, step in pairs if step is not None]
        return ExtraOperands([buffer for buffer, _ in found], [affine for _, affine in found])

    def finish(self, op: DerivedInstruction, is_behind: bool, counted: str) -> None:
        """
        Erase the stack after its fusion into `op`, and add one to the statistic `counted`; `is_behind`: the stack
        followed `op`.
        """
        self.accesses.forget(self.stack)
        locations = [op.location, self.stack.location] if is_behind else [self.stack.location, op.location]
        op.location = fuse_locations(locations)
        block = self.stack.parent_block()
        assert block is not None
        block.erase_op(self.stack)
        statistics.count(counted)


def fuse_stacks(module: ModuleOp, kind: type[Fusion]) -> None:
    """Run the fusion `kind` on each stack of a module."""
    storage = Storage(module)
    for function in low_functions(module):
        backend, target = get_backend(function.target.backend), function.target
        for block in blocks(function):
            accesses = Accesses.of(block)
            for stack in list(own_operations(block)):
                if isinstance(stack, StackOp) and has_plain_operands(stack):
                    kind(stack, accesses, backend, storage, target).run()
