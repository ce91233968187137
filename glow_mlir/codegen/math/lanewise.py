"""Functions of scalars, applied to each lane of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value


def each_lane(b: Builder, function: str, *operands: Value) -> Value:
    """Return what a function of the module gives for scalars, or for each lane of vectors; it gives what it takes."""
    first = operands[0]
    if not first.info.is_vector:
        return _call(b, function, operands)
    result = b.poison(first.type)
    for lane in range(first.lanes):
        value = _call(b, function, [b.extract(operand, lane) for operand in operands])
        result = b.insert(result, value, lane)
    return result


def _call(b: Builder, function: str, scalars: Sequence[Value]) -> Value:
    result = b.call(function, scalars)
    assert result is not None, f"'{function}' gives no value"
    return result
