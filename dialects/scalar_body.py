"""Scalar bodies as blocks: the body of an elementwise operator, ready to evaluate, stack or compile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.scalar_builder import ScalarBuilder
from glow_mlir.dialects.shapes import element_of


def is_elementwise(op: Operation) -> bool:
    """Whether `op` is an elementwise operator or the instruction of one."""
    if isinstance(op, DerivedInstruction):
        return issubclass(op.OPERATOR, Elementwise)
    return isinstance(op, Elementwise)


def append_body(op: Operation, block: Block, arguments: Sequence[SSAValue]) -> SSAValue:
    """Append the scalar body of an elementwise `op` to `block`, on `arguments`, one an input; gives its result."""
    assert isinstance(op, Elementwise | DerivedInstruction)

    def insert(new: Operation) -> Operation:
        new.location = op.location
        block.add_op(new)
        return new

    builder = ScalarBuilder(insert)
    scalars = [
        builder.wrap(argument, element_of(value)) for argument, value in zip(arguments, op.inputs(), strict=True)
    ]
    body = getattr(op, "scalar")
    return body(builder, *scalars).value


def scalar_body(op: Operation) -> tuple[Block, SSAValue]:
    """A new block with the scalar body of an elementwise `op`, one argument an input, and its result."""
    assert isinstance(op, Elementwise | DerivedInstruction)
    block = Block(arg_types=[signless(element_of(value)) for value in op.inputs()])
    return block, append_body(op, block, block.args)
