"""
What instructions cost, and the one rule that decides what joins what.

The rule weighs memory traffic that is saved against computation that is repeated. Joining two loops saves the bytes of
what one stores and the other loads, and of operands that both load. It repeats work where the joined loop meets an
element more than once. The rule holds for stacks, epilogues and prologues alike.
"""

from __future__ import annotations

import math

from xdsl.ir import Block

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import element_of, size_of

OPERATIONS_PER_BYTE = 4
"""Operations that take as long as one byte of traffic: a core does 16 to 32 a cycle, a cache moves 4 to 8 bytes."""

WEIGHTS = {
    "arith.divf": 4,
    "arith.divsi": 16,
    "arith.divui": 16,
    "arith.remf": 16,
    "arith.remsi": 16,
    "arith.remui": 16,
    "math.sqrt": 4,
    "math.rsqrt": 4,
    "math.absf": 1,
    "math.fma": 1,
    "math.floor": 1,
    "math.ceil": 1,
    "math.trunc": 1,
    "math.roundeven": 1,
}
"""Operation → how many additions it is worth; other functions of `math` are polynomials worth `POLYNOMIAL`."""

POLYNOMIAL = 16


def is_profitable(saved_bytes: int, repeated_operations: int = 0) -> bool:
    """Whether joining two loops is faster than leaving them apart."""
    return saved_bytes * OPERATIONS_PER_BYTE > repeated_operations


def operations(body: Block) -> int:
    """The work of a body for one element, in additions."""
    return sum(_weight(op.name) for op in body.ops if op.results and op.operands)


def _weight(name: str) -> int:
    return WEIGHTS.get(name, POLYNOMIAL if name.startswith("math.") else 1)


def bytes_moved(op: Instruction) -> int:
    """The bytes that an instruction reads and writes: each element of an operand once, however often it is used."""
    return sum(
        (qualifier.reads + qualifier.writes) * size_of(value.type) * byte_width(element_of(value))
        for qualifier, value in op.uses()
    )


def work(op: Instruction) -> int:
    """
    How long an instruction takes on one thread, in additions, 16 to 32 of which take a cycle.

    It is the time of its arithmetic or of its memory traffic, whichever is longer.
    """
    return max(_arithmetic(op), bytes_moved(op) * OPERATIONS_PER_BYTE)


def _arithmetic(op: Instruction) -> int:
    if isinstance(op, StackOp):
        return math.prod(op.extents()) * operations(op.block)
    if not isinstance(op, DerivedInstruction):
        return 0
    done = op.arithmetic()
    return 2 * (done.operations + done.functions * POLYNOMIAL)
