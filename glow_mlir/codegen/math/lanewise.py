"""Scalar code, applied to each lane of vectors."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value


def each_lane(b: Builder, body: Callable[..., Value], *operands: Value) -> Value:
    """Return the result of `body` for scalars, or for each lane of vectors."""
    lanes = operands[0].lanes
    if lanes == 1:
        return body(*operands)
    results = [body(*(b.extract(operand, lane) for operand in operands)) for lane in range(lanes)]
    joined = b.poison(vector(results[0].type, lanes))
    for lane, result in enumerate(results):
        joined = b.insert(joined, result, lane)
    return joined


def call_for_each_lane(b: Builder, function: str, *operands: Value) -> Value:
    """Return the result of a function of the module for scalars, or for each lane of vectors."""

    def call(*scalars: Value) -> Value:
        result = b.call(function, scalars)
        assert result is not None, f"'{function}' gives no value"
        return result

    return each_lane(b, call, *operands)
