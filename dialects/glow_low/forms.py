"""Instructions like others on buffers of other types: where symbols are numbers."""

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
    An instruction for itself that does what `op` does where all symbols are as large as they may be; `op` itself where
    it has none.
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
