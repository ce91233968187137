"""`shorten-lifetimes`: allocate right before the first use, deallocate right after the last."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, ViewOp, root_of
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import blocks, operations_backward, own_operations, subtree
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.operations import operands_of


@dataclass(frozen=True)
class ShortenLifetimesPass(ModulePass):
    """
    Sink allocations to their first use, hoist deallocations behind the last, and drop unused ones (Glow's SinkAllocas,
    HoistDealloc and DeleteDeadAllocs).
    """

    name = "shorten-lifetimes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            erase_dead_views(function)
            for block in blocks(function):
                shorten(block)


def erase_dead_views(function: FuncOp) -> None:
    """Erase unused views, and views that only those use."""
    for op in operations_backward(function):
        if isinstance(op, ViewOp) and op.result.first_use is None:
            op.detach()
            op.erase()


def shorten(block: Block) -> None:
    """
    Move the allocations and deallocations of one block, in one walk; nested uses count as uses by the enclosing op.
    """
    first: dict[SSAValue, Operation] = {}
    last: dict[SSAValue, Operation] = {}
    frees: dict[SSAValue, DeallocOp] = {}
    for op in own_operations(block):
        if isinstance(op, DeallocOp):
            frees[op.buffer] = op
            continue
        for inner in subtree(op) if op.regions else (op,):
            for value in operands_of(inner):
                root = root_of(value)
                first.setdefault(root, op)
                last[root] = op
    for op in list(own_operations(block)):
        if not isinstance(op, AllocOp):
            continue
        free = frees.get(op.result)
        if op.result not in first:
            if free is not None:
                block.erase_op(free)
            block.erase_op(op)
            statistics.count("unused allocations erased")
            continue
        op.detach()
        block.insert_op_before(op, first[op.result])
        if free is None:
            free = DeallocOp.of(op.result, location=op.location)
        else:
            free.detach()
        block.insert_op_after(free, last[op.result])
