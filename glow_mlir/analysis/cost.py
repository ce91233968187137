"""
What instructions cost, and the one rule that decides what joins what.

The rule weighs memory traffic that is saved against computation that is repeated. Joining two loops saves the bytes of
what one stores and the other loads, and of operands that both load. It repeats work where the joined loop meets an
element more than once. The rule holds for stacks, epilogues and prologues alike.
"""

from __future__ import annotations

import math

from xdsl.ir import Block, Operation

from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.interfaces import Workload
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import bytes_of, has_static_shape

DIVISIONS = frozenset({"arith.divf", "math.sqrt", "math.rsqrt"})
"""Operations that cost as much as a division of floats."""

INTEGER_DIVISIONS = frozenset({"arith.divsi", "arith.divui", "arith.remf", "arith.remsi", "arith.remui"})
"""Operations that cost as much as a division of integers."""

SINGLE = frozenset({"math.absf", "math.fma", "math.floor", "math.ceil", "math.trunc", "math.roundeven"})
"""Functions of `math` that are one instruction; the others are polynomials."""


def is_profitable(saved_bytes: int) -> bool:
    """Whether joining two loops that repeats no work is faster than leaving them apart."""
    return saved_bytes > 0


def outweighs(saved_bytes: int, repeated_operations: int, costs: Costs) -> bool:
    """Whether joining two loops is faster than leaving them apart, where it repeats operations of the one."""
    return saved_bytes * costs.operations_per_byte > repeated_operations


def operations(body: Block, costs: Costs) -> int:
    """The work of a body for one element, in additions."""
    return sum(_weight(op.name, costs) for op in body.ops if op.results and op.operands)


def _weight(name: str, costs: Costs) -> int:
    if name in DIVISIONS:
        return costs.division_operations
    if name in INTEGER_DIVISIONS:
        return costs.integer_division_operations
    return costs.function_operations if name.startswith("math.") and name not in SINGLE else 1


def bytes_moved(op: Instruction) -> int:
    """
    The bytes that an instruction reads and writes, the most where symbols decide: each element of an operand once,
    however often it is used.
    """
    return sum((qualifier.reads + qualifier.writes) * bytes_of(value) for qualifier, value in op.uses())


def work(op: Instruction, costs: Costs) -> int:
    """
    How long an instruction takes on one thread, in additions, 16 to 32 of which take a cycle.

    It is the time of its arithmetic or of its memory traffic, whichever is longer.
    """
    return max(_arithmetic(op, costs), bytes_moved(op) * costs.operations_per_byte)


def operator_work(op: Operation, costs: Costs) -> int:
    """
    How long an operator takes that is an instruction of its own, as `work`; 0 for what computes nothing.

    Of one whose sizes are known at run time only, it is the memory traffic that counts, at its most.
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
