"""Loops that carry sequences, optionals or strings: they are unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.shapes import Shape, shape_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.control_flow import check_number
from glow_mlir.frontends.onnx.values import Structured, Value

MAX_TRIPS = 1 << 12
"""The maximum number of unrolled trips."""


def carries_structures(node: Node) -> bool:
    """Whether a Loop carries values other than numeric tensors."""
    return any(isinstance(operand, Structured) for operand in node.operands[2:])


def own_inputs(node: Node, number: SSAValue) -> tuple[SSAValue, SSAValue]:
    """
    The inputs of a Loop's body before the carried values: the trip number, and the condition, which is true.

    Both have the rank that the body declares, as in onnxruntime: old models declare one axis.
    """
    given = node.optional(1)
    index = _declared_shape(node, 0, ())
    goes_on = np.ones(_declared_shape(node, 1, () if given is None else shape_of(given)), np.bool_)
    return (node.emit(ReshapeOp, number, shape=index) if index else number), node.constant(goes_on)


def _declared_shape(node: Node, position: int, default: Shape) -> Shape:
    """The declared shape of a single-element input of a Loop's body: `()` or `(1,)`."""
    declared = node.subgraph("body").input[position].type.tensor_type
    return (1,) * len(declared.shape.dim[:1]) if declared.HasField("shape") else default


def structured_loop(node: Node) -> list[Value] | None:
    """
    The results of a Loop that carries values of any type.

    Its trip count, or the condition of each trip, must be known at import; otherwise raises `UnsupportedError`.
    """
    carried = [node.operand(position) for position in range(2, len(node.operands))]
    body = node.subgraph("body")
    check_number(node, 2 + len(carried), len(body.input), "its body takes")
    if len(body.output) < 1 + len(carried):
        check_number(node, 1 + len(carried), len(body.output), "its body gives")
    count = MAX_TRIPS if node.optional(0) is None else int(node.array(0, "the trip count").item())
    goes_on = node.optional(1) is None or bool(node.array(1, "the condition").item())
    rows: list[Sequence[Value]] = []
    while goes_on and len(rows) < count:
        if len(rows) == MAX_TRIPS:
            raise node.unsupported(f"more than {MAX_TRIPS} iterations of a loop that carries sequences")
        number = node.constant(np.array(len(rows), np.int64))
        found = node.inline_values("body", [*own_inputs(node, number), *carried])
        if found is None:
            return None
        condition = node.fold(found[0]) if isinstance(found[0], SSAValue) else None
        if condition is None:
            raise node.unsupported("it carries a sequence, and its condition depends on an input of the model")
        goes_on = bool(condition.item())
        carried = found[1 : 1 + len(carried)]
        rows.append(found[1 + len(carried) :])
    if len(body.output) > 1 + len(carried) and not rows:
        raise node.unsupported("it carries a sequence, and without iterations its rows have no shape")
    return [*carried, *(_stacked(node, column) for column in zip(*rows, strict=True))]


def _stacked(node: Node, column: Sequence[Value]) -> SSAValue:
    """Stack the rows of all trips."""
    values = [value for value in column if isinstance(value, SSAValue)]
    if len(values) < len(column) or any(value.type != values[0].type for value in values):
        raise ModelError("Loop: the rows of a result differ, or are not numeric tensors", node=node.name)
    return node.emit(ConcatOp, [node.emit(ReshapeOp, row, shape=(1, *sizes_of(row))) for row in values], axis=0)
