"""Copies of instructions on buffers of other types, with numbers for symbols."""

from __future__ import annotations

from typing import TypeVar, cast

from xdsl.ir import Block

from glow_mlir.dialects.attribute_syntax import properties_at
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import Buffer, buffer_at
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.symbol_binding import used_symbols
from glow_mlir.xdsl_patches.operations import cloned_region

InstructionT = TypeVar("InstructionT", bound=Instruction)


def at_largest(op: InstructionT) -> InstructionT:
    """
    A detached instruction like `op` with all symbols at their upper bounds; `op` itself if it has no symbols.
    """
    symbols = {symbol.name: symbol.most for symbol in used_symbols(op)}
    if not symbols and all(map(has_static_shape, op.operands)):
        return op
    types = [buffer_at(cast("Buffer", value.type), symbols) for value in op.operands]
    return type(op).create(
        operands=Block(arg_types=types).args,
        properties=properties_at(op.properties, symbols),
        regions=[cloned_region(region) for region in op.regions],
        location=op.location,
    )
