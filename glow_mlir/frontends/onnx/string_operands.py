"""Apply operators that only move or compare elements to tensors of strings, by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.frontends.onnx.models.functions import schema_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings, Value

STRING = "tensor(string)"

ORDERED = frozenset({"Unique"})
"""Operators that order strings, which is not possible by their numbers."""


def on_strings(function: Callable[..., Any], node: Node) -> list[Value | None] | None:
    """
    Call an importer of numeric operands with the numbers of strings, if the standard allows strings as operands.

    Results that have the type of a string operand are strings. Raises `UnsupportedError` for any other operator.
    """
    schema = schema_of(node.domain, node.kind, node.version)
    if schema is None:
        raise node.unsupported("operands of strings are not supported")
    allowed = {item.type_param_str for item in schema.type_constraints if STRING in item.allowed_type_strs}
    moved: set[str] = set()
    for position, operand in enumerate(node.operands):
        if isinstance(operand, Strings):
            variable = _formal(schema.inputs, position).type_str
            if variable not in allowed or node.kind in ORDERED:
                raise node.unsupported(f"operand {position} is of strings")
            moved.add(variable)
            node.inputs[position] = operand.numbers
    results: SSAValue | Sequence[SSAValue | None] | None = function(node)
    if results is None:
        return None
    listed = [results] if isinstance(results, SSAValue) else results
    return [
        Strings(value) if value is not None and _formal(schema.outputs, position).type_str in moved else value
        for position, value in enumerate(listed)
    ]


def _formal(formals: Sequence[Any], position: int) -> Any:
    """The formal operand or result at a position; the last one, which may be variadic, for all positions after it."""
    return formals[min(position, len(formals) - 1)]
