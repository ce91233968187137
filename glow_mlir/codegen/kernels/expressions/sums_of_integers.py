"""Sums of integers of 8 or 16 bits in wider ones."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.kernels.expressions.generic_program import Program
from glow_mlir.dialects.element_types import number_width
from glow_mlir.dialects.stages import StageOp
from glow_mlir.support.dataclass import dataclass

MAX_SUMMANDS = 256
"""How many 8-bit integers can be added up in 16 bits of the same signedness."""


@dataclass(frozen=True)
class SumOfIntegers:
    """A sum in i32 of the narrower elements of an operand, in a chain of one stage."""

    stage: StageOp
    index: int
    """The number of the fold in the stage; other folds count elements."""
    elements: SSAValue
    """The row of the elements."""
    is_signed: bool
    bits: int
    """Bits of an element."""


def sum_of_integers(program: Program) -> SumOfIntegers | None:
    """The sum that a program consists of; `None` if it reads or folds anything else."""
    if len(program.stages) != 1 or len(program.block.args) != 1:
        return None
    (stage,) = program.stages
    found = [index for index, value in enumerate(stage.yielded) if not isinstance(value.owner, arith.ConstantOp)]
    if len(found) != 1 or set(stage.words) != {"add"} or list(stage.inputs) != [program.block.args[0]]:
        return None
    wide = stage.yielded[found[0]]
    owner = wide.owner
    if not isinstance(owner, arith.ExtSIOp | arith.ExtUIOp) or owner.input is not stage.body.block.args[0]:
        return None
    is_signed, bits = isinstance(owner, arith.ExtSIOp), number_width(owner.input.type)
    if wide.type != i32 or bits not in (8, 16) or not all(isinstance(program.space[d], int) for d in program.rows):
        return None
    return SumOfIntegers(stage, found[0], stage.inputs[0], is_signed, bits)
