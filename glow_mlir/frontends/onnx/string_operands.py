"""Operators that move tensors of any elements, or compare them, on tensors of strings: they do it to their numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.frontends.onnx.functions import schema_of
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings, Value

STRING = "tensor(string)"

ORDERED = frozenset({"Unique"})
"""Operators that take strings and order them, which numbers do not say."""


def on_strings(function: Callable[..., Any], node: Node) -> list[Value | None] | None:
    """
    What an importer of numbers makes of strings, where the standard lets its operator have them.

    Results whose type is that of an operand of strings are strings. Raises `UnsupportedError` for any other operator.
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
    """The formal operand or result at a position; of those behind the last, which may be many, the last."""
    return formals[min(position, len(formals) - 1)]
