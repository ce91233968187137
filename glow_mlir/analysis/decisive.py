"""Which numbers decide codes, indices and truth values by their last bit."""

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
    The values of a function that discontinuous operators read, themselves or by way of elementwise operators, of moves
    and of the largest and smallest elements.

    A number that differs in its last bit may there be another code, or lie on the other side of a limit. What is summed
    in between, as products are, has no such bit. Through branches and loops, trip after trip, all values go that they
    are given or yield.
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
    """Whether a last bit of an operand is one of a result."""
    return isinstance(op, Elementwise | DataMovement) or op.chooses_elements()


def _carried(op: ControlFlowOp) -> Iterable[SSAValue]:
    """What results and values inside a branch or loop may be: what it is given, and what its regions yield."""
    yield from op.operands
    for block in inner_blocks(op):
        if block.last_op is not None:
            yield from block.last_op.operands
