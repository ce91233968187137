"""Values whose last bit decides quantized values, indices and truth values."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.ir.traversal import inner_blocks, operations


def decisive_values(function: FunctionOp, storage: Storage) -> frozenset[SSAValue]:
    """
    The values that reach discontinuous operators of a function unrounded: directly, or through elementwise operators,
    data movement and selection of extremes.

    A difference in the last bit may there change a quantized value, or the outcome of a comparison. Sums in between, as
    in products, absorb it. Branches and loops pass on all values that they read or yield.
    """
    pending = [value for op in operations(function) if _is_discontinuous(op) for value in op.operands]
    found: set[SSAValue] = set()
    regions: set[ControlFlowOp] = set()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        if isinstance(owner, HighOp) and _carries(owner):
            pending += owner.operands
        elif isinstance(owner, ControlFlowOp) and owner not in regions:
            regions.add(owner)
            pending += _carried(owner)
    return frozenset(found)


def _is_discontinuous(op: Operation) -> bool:
    return isinstance(op, HighOp) and op.is_discontinuous()


def _carries(op: HighOp) -> bool:
    """Whether the last bit of an operand reaches a result."""
    return isinstance(op, Elementwise | DataMovement) or op.chooses_elements()


def _carried(op: ControlFlowOp) -> Iterable[SSAValue]:
    """The sources of results and of values inside a branch or loop: operands and yielded values."""
    yield from op.operands
    for block in inner_blocks(op):
        if block.last_op is not None:
            yield from block.last_op.operands
