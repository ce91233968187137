"""ONNX's pooling operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import LessOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import ScatterElementsOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import size_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.axis_order import to_channels_first, to_channels_last
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.frontends.onnx.operators.spatial import padding
from glow_mlir.ir.registry import onnx_operator


def whole_order(node: Node) -> int:
    """The order of a norm, a float in opset 1; raises `UnsupportedError` if it is not an integer."""
    p = node.float("p", 2.0)
    if not p.is_integer():
        raise node.unsupported(f"the norm of order {p} is not supported, only integers are")
    return int(p)


def pool(
    node: Node, operator: type[HighOp], value: SSAValue, *, is_last: bool = False, **properties: AttributeValue
) -> SSAValue:
    """Apply a pooling operator to `value`, whose shape is that of the node's first operand."""
    return _pools(node, operator, value, is_last, **properties)[0]


def _pools(
    node: Node, operator: type[HighOp], value: SSAValue, is_last: bool = False, **properties: AttributeValue
) -> Sequence[SSAValue]:
    kernel = node.ints("kernel_shape")
    ones = (1,) * len(kernel)
    strides, dilations = node.ints("strides", ones), node.ints("dilations", ones)
    results = node.emit_all(
        operator,
        value if is_last else to_channels_last(node, value),
        kernel_shape=kernel,
        strides=strides,
        pads=padding(node, kernel, strides, dilations, is_last),
        dilations=dilations,
        ceil_mode=node.flag("ceil_mode"),
        **properties,
    )
    return results if is_last else [to_channels_first(node, result) for result in results]


@onnx_operator("MaxPool")
def max_pool(node: Node) -> Sequence[SSAValue]:
    """The maximum of each window, and its position if that result is used."""
    if not node.wants(1):
        return _pools(node, MaxPoolOp, node.input())
    return _pools(node, MaxPoolWithIndicesOp, node.input(), False, **ATTRIBUTE_MAPS["MaxPool"].import_from(node))


@onnx_operator("MaxUnpool", since=9)
def max_unpool(node: Node) -> SSAValue:
    """Scatter elements to the positions found by MaxPool, zero elsewhere; `output_shape` appends further zeros."""
    kernel = node.ints("kernel_shape")
    strides, pads = node.ints("strides", (1,) * len(kernel)), node.ints("pads", (0,) * (2 * len(kernel)))
    if not len(kernel) == len(strides) == len(pads) // 2 == node.rank() - 2:
        hint = "kernel_shape and strides have one number for each spatial axis, pads two"
        raise ModelError(f"MaxUnpool: windows do not fit {node.rank() - 2} spatial axes", node=node.name, hint=hint)
    sizes = node.shape()[2:]
    spatial = [
        (size - 1) * stride - sum(pads[axis :: len(kernel)]) + extent
        for axis, (size, stride, extent) in enumerate(zip(sizes, strides, kernel, strict=True))
    ]
    shape = (*node.shape()[:2], *spatial)
    node.check_size(*shape)
    count = size_of(node.input())
    zeros = node.emit(
        SplatOp, value=scalar_attribute(numpy_dtype(node.element()).type(0), node.element()), shape=(math.prod(shape),)
    )
    positions, values = (node.emit(ReshapeOp, node.input(position), shape=(count,)) for position in (1, 0))
    # Negative positions would count from the end: move them past the end, which is out of range.
    end = node.constant(np.array(math.prod(shape), np.int64))
    is_none = node.emit(LessOp, positions, node.constant(np.array(0, np.int64)))
    inside = node.emit(WhereOp, is_none, end, positions)
    image = node.emit(ReshapeOp, node.emit(ScatterElementsOp, zeros, inside, values), shape=shape)
    if node.optional(2) is None:
        return image
    wanted = node.integers(2, "the shape")
    if len(wanted) != len(shape) or any(a < b for a, b in zip(wanted, shape, strict=True)):
        raise ModelError(f"MaxUnpool: the output shape {wanted} is smaller than {shape}", node=node.name)
    node.check_size(*wanted)
    return node.emit(PadOp, image, pads=(*(0,) * len(shape), *np.subtract(wanted, shape).tolist()))


@onnx_operator("AveragePool")
def average_pool(node: Node) -> SSAValue:
    """The mean of each window."""
    return pool(node, AvgPoolOp, node.input(), count_include_pad=node.flag("count_include_pad"))


@onnx_operator("LpPool")
def lp_pool_float(node: Node) -> SSAValue:
    """The p-norm of each window; p is a float in opset 1."""
    return pool(node, LpPoolOp, node.input(), p=whole_order(node))


@onnx_operator("LpPool", since=2)
def lp_pool(node: Node) -> SSAValue:
    """The p-norm of each window."""
    return pool(node, LpPoolOp, node.input(), p=node.int("p", 2))
