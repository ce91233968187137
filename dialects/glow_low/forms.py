"""Instructions like others on buffers of other types: where symbols are numbers, or on a part of the operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from xdsl.ir import Attribute, Block, Region

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import Buffer, buffer_at
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.sizes import SizesAttr, shape_at
from glow_mlir.dialects.symbol_binding import used_symbols

InstructionT = TypeVar("InstructionT", bound=Instruction)


def on_buffers(
    op: InstructionT,
    types: Sequence[Buffer],
    properties: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] | None = None,
) -> InstructionT:
    """
    An instruction for itself, that does what `op` does to buffers of these types, one for each operand of `op`.

    It has the properties and bodies of `op` unless others are given.
    """
    bodies = [region.clone() for region in op.regions] if regions is None else regions
    return type(op).create(
        operands=Block(arg_types=types).args,
        properties=dict(op.properties if properties is None else properties),
        regions=bodies,
        location=op.location,
    )


def at_largest(op: InstructionT) -> InstructionT:
    """The instruction where all symbols are as large as they may be; `op` itself where it has none."""
    symbols = {symbol.name: symbol.most for symbol in used_symbols(op)}
    if not symbols and all(map(has_static_shape, op.operands)):
        return op
    types = [buffer_at(cast("Buffer", value.type), symbols) for value in op.operands]
    known = {
        name: to_attribute(shape_at(value.data, symbols)) if isinstance(value, SizesAttr) else value
        for name, value in op.properties.items()
    }
    return on_buffers(op, types, known)
