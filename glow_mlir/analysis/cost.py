"""
Cost model of instructions, and the rule that decides fusion.

The rule weighs saved memory traffic against repeated computation. Fusing two loops saves the bytes that one stores and
the other loads, and those of operands that both load. It repeats work if the fused loop visits an element more than
once. The rule is the same for stacks, epilogues and prologues.
"""

from __future__ import annotations

import math

from xdsl.ir import Block, Operation

from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.interfaces import Workload
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import bytes_of, element_of, has_static_shape

DIVISIONS = frozenset({"arith.divf", "math.sqrt", "math.rsqrt"})
"""Operations as expensive as a float division."""

INTEGER_DIVISIONS = frozenset({"arith.divsi", "arith.divui", "arith.remf", "arith.remsi", "arith.remui"})
"""Operations as expensive as an integer division."""

SINGLE = frozenset({"math.absf", "math.fma", "math.floor", "math.ceil", "math.trunc", "math.roundeven"})
"""Functions of `math` that are one instruction; the others are polynomials."""


def is_profitable(saved_bytes: int) -> bool:
    """Whether fusing two loops is profitable if it repeats no work."""
    return saved_bytes > 0


def outweighs(saved_bytes: int, repeated_operations: int, costs: Costs) -> bool:
    """Whether fusing two loops is profitable if it repeats operations of one of them."""
    return saved_bytes * costs.operations_per_byte > repeated_operations


def operations(body: Block, costs: Costs) -> int:
    """The cost of a body per element, in additions."""
    return sum(_weight(op.name, costs) for op in body.ops if op.results and op.operands)


def _weight(name: str, costs: Costs) -> int:
    if name in DIVISIONS:
        return costs.division_operations
    if name in INTEGER_DIVISIONS:
        return costs.integer_division_operations
    return costs.function_operations if name.startswith("math.") and name not in SINGLE else 1


def bytes_moved(op: Instruction) -> int:
    """
    The bytes that an instruction reads and writes, at the maximum of symbols: each element of an operand once, however
    often it is used.
    """
    return sum((qualifier.reads + qualifier.writes) * bytes_of(value) for qualifier, value in op.uses())


def work(op: Instruction, costs: Costs) -> int:
    """
    Time of an instruction on one thread, in additions, 16 to 32 of which take a cycle.

    The maximum of its arithmetic and its memory traffic.
    """
    return max(_arithmetic(op, costs), bytes_moved(op) * costs.operations_per_byte)


def work_at_points(op: Instruction, points: int, costs: Costs) -> int:
    """
    As `work`, of an instruction of known sizes that reads at most one element of each operand at each of its points: a
    gather reads few rows of its table.
    """
    moved = sum(
        (qualifier.reads + qualifier.writes) * min(bytes_of(value), points * byte_width(element_of(value)))
        for qualifier, value in op.uses()
    )
    return max(_arithmetic(op, costs), moved * costs.operations_per_byte)


def operator_work(op: Operation, costs: Costs) -> int:
    """
    Time of an operator that becomes an instruction of its own, in units of `work`; 0 if it computes nothing.

    With run-time sizes, the maximum memory traffic counts.
    """
    if not isinstance(op, HighOp):
        return 0
    values = (*op.operands, *op.results)
    traffic = sum(map(bytes_of, values)) * costs.operations_per_byte
    if not all(map(has_static_shape, values)):
        return traffic
    return max(_computed(op, costs), traffic)


def _arithmetic(op: Instruction, costs: Costs) -> int:
    if isinstance(op, StackOp):
        return math.prod(op.extents()) * operations(op.block, costs)
    if not isinstance(op, DerivedInstruction):
        return 0
    return _computed(op, costs)


def _computed(op: Workload, costs: Costs) -> int:
    """The arithmetic of an operator, or of its instruction, in additions."""
    done = op.arithmetic()
    return 2 * (done.operations + done.functions * costs.function_operations)
