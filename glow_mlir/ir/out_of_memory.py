"""The error for a model whose values exceed the available memory."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType

from glow_mlir.dialects.shapes import bytes_of
from glow_mlir.errors import OutOfMemoryError
from glow_mlir.ir.locations import short_location_names, source_location
from glow_mlir.ir.text import one_line


def out_of_memory(module: ModuleOp, failure: MemoryError) -> OutOfMemoryError:
    """
    The error for insufficient memory while compiling or interpreting a module; it names the node of the largest value.
    """
    values = [value for op in module.walk() for value in op.results if isinstance(value.type, TensorType | MemRefType)]
    reason = f"there is too little memory for the model: {one_line(failure) or 'nothing is left'}"
    hint = "check the sizes of inputs, and constants that say how large a value is"
    if not values:
        return OutOfMemoryError(reason, hint=hint)
    largest = max(values, key=bytes_of)
    reason = f"{reason}; its largest value takes {bytes_of(largest)} bytes"
    node = short_location_names(module.walk()).get(largest.owner, "")
    return OutOfMemoryError(reason, file=source_location(largest.owner), node=node, hint=hint)
