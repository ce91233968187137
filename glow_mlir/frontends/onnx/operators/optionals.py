"""ONNX's optionals; the import knows whether they have values."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import OptionalValue, Value, takes_values
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("Optional")
@takes_values
def optional(node: Node) -> OptionalValue:
    """An optional, with a value or empty."""
    value = node.operands[0] if node.operands else None
    return OptionalValue(value, node.type_attribute("type") if node.has("type") else None)


@onnx_operator("OptionalHasElement")
@takes_values
def optional_has_element(node: Node) -> SSAValue:
    """Whether an optional has a value; true for values that are not optionals."""
    value = node.operands[0] if node.operands else None
    has = value is not None and not (isinstance(value, OptionalValue) and value.value is None)
    return node.constant(np.array(has))


@onnx_operator("OptionalGetElement")
@takes_values
def optional_get_element(node: Node) -> Value:
    """The value of an optional; raises `ModelError` if it is empty."""
    value = node.operand()
    found = value.value if isinstance(value, OptionalValue) else value
    if found is None:
        raise ModelError("OptionalGetElement: the optional has no value", node=node.name)
    return found
