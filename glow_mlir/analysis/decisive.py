"""Which numbers decide codes, indices and truth values by their last bit."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.ir.traversal import inner_blocks, operations_backward


def decisive_values(function: FunctionOp, storage: Storage) -> frozenset[SSAValue]:
    """
    The values of a function that discontinuous operators read, themselves or by way of elementwise operators, of moves
    and of the largest and smallest elements.

    A number that differs in its last bit may there be another code, or lie on the other side of a limit. What is summed
    in between, as products are, has no such bit.
    """
    found: set[SSAValue] = set()
    for op in operations_backward(function):
        if _decides(op, found):
            found.update(op.operands)
    return frozenset(found)


def _decides(op: Operation, found: set[SSAValue]) -> bool:
    """Whether a last bit of an operand is one of a value that was found, or decides itself."""
    if isinstance(op, HighOp):
        carries = isinstance(op, Elementwise | DataMovement) or op.chooses_elements()
        return op.is_discontinuous() or (carries and not found.isdisjoint(op.results))
    if isinstance(op, ControlFlowOp):
        return any(not found.isdisjoint(block.args) for block in inner_blocks(op))
    around = op.parent_op()
    return isinstance(around, ControlFlowOp) and op.next_op is None and not found.isdisjoint(around.results)
