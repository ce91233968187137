"""ONNX's operators that make constants: from attributes, from shapes, or from other constants."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.sizes import HINT
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.slices import iota, scalar
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import Strings, Value
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize, product_of, quotient


@onnx_operator("Constant")
def constant(node: Node) -> Value:
    """The value of the attribute that is present."""
    if node.has("value") and node.tensor("value").dtype == object:
        return Strings(node.constant(node.strings.numbers(node.tensor("value"))))
    if node.has("value_string"):
        return Strings(node.constant(node.strings.numbers(np.array(node.text("value_string"), object))))
    if node.has("value_strings"):
        return Strings(node.constant(node.strings.numbers(node.texts("value_strings"))))
    if node.has("value"):
        return node.constant(node.tensor("value"))
    if node.has("value_float"):
        return node.constant(np.array(node.float("value_float"), np.float32))
    if node.has("value_floats"):
        return node.constant(np.array(node.floats("value_floats"), np.float32))
    if node.has("value_int"):
        return node.constant(np.array(node.int("value_int"), np.int64))
    if node.has("value_ints"):
        return node.constant(np.array(node.ints("value_ints"), np.int64))
    if node.has("sparse_value"):
        return node.constant(node.sparse_tensor("sparse_value"))
    raise ModelError("Constant: it has no value", node=node.name)


@onnx_operator("ConstantOfShape")
def constant_of_shape(node: Node) -> SSAValue:
    """One value, by default 0.0, in the given shape."""
    value = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise ModelError(f"ConstantOfShape: expected 1 element in the value, got {value.size}", node=node.name)
    if value.dtype.name not in ELEMENT_TYPES:
        raise node.unsupported(f"element type {value.dtype.name} is not supported")
    shape = node.known_sizes(0, "the shape")
    fill = scalar_attribute(value.reshape(-1)[0], ELEMENT_TYPES[value.dtype.name])
    return node.emit(SplatOp, value=fill, shape=shape)


@onnx_operator("Shape")
def shape(node: Node) -> SSAValue:
    """The sizes of the axes from `start` up to, but not including, `end`."""
    sizes = node.sizes()[node.int("start", 0) : node.int("end", node.rank())]
    return numbers_of(node, sizes)


def numbers_of(node: Node, sizes: Sizes) -> SSAValue:
    """Sizes as a vector: a constant if all are known."""
    if any(isinstance(size, SymbolicSize) for size in sizes):
        return node.emit(ShapeOp, sizes=sizes)
    return node.constant(np.array(sizes, np.int64))


@onnx_operator("Size")
def size(node: Node) -> SSAValue:
    """The number of elements."""
    return scalar(node, product_of(node.sizes()))


@onnx_operator("Range")
def range_(node: Node) -> SSAValue:
    """Numbers from the first operand up to, but not including, the second, in steps of the third."""
    operands = [node.symbolic_value(node.input(position)) for position in range(3)]
    bounds = [item.item() for item in operands if item is not None and item.size == 1]
    if len(bounds) == 3 and any(isinstance(bound, SymbolicSize) for bound in bounds):
        return _run_time_range(node, *bounds)
    start, limit, delta = (node.array(i, role) for i, role in enumerate(("the start", "the limit", "the step")))
    if any(bound.size != 1 for bound in (start, limit, delta)):
        hint = "pass scalars"
        raise ModelError("Range: bounds and step must be single numbers", node=node.name, hint=hint)
    if delta == 0:
        raise ModelError("Range: the step must not be 0", node=node.name)
    wide = np.float64 if is_float_dtype(start.dtype) else np.int64
    with np.errstate(all="ignore"):
        steps = np.ceil((limit.astype(wide) - start.astype(wide)) / delta.astype(wide)).item()
    if not np.isfinite(steps):
        raise ModelError(f"Range: from {start} to {limit} by {delta} has no valid number of steps", node=node.name)
    count = max(0, int(steps))
    node.check_size(count)
    return node.constant((start.item() + np.arange(count) * delta.item()).astype(start.dtype))


def _run_time_range(node: Node, start: Size, limit: Size, delta: Size) -> SSAValue:
    """A range with symbolic bounds: `iota * delta + start`."""
    count = quotient(limit - start, delta)
    if count is None:
        reason = f"Range: from {start} to {limit} by {delta} has no valid number of steps for all sizes"
        raise UnsupportedError(reason, node=node.name, hint=HINT)
    numbers = iota(node, count, delta if isinstance(delta, int) else 1, numpy_dtype(node.element()))
    if not isinstance(delta, int):
        numbers = node.emit(MulOp, numbers, node.input(2))
    return numbers if start == 0 else node.emit(AddOp, numbers, node.input(0))


@onnx_operator("EyeLike")
def eye_like(node: Node) -> SSAValue:
    """Ones along the `k`-th diagonal of a matrix of the operand's shape."""
    if node.rank() not in (1, 2):
        raise ModelError(f"EyeLike takes a matrix, not shape {node.sizes()}", node=node.name)
    rows, columns = node.sizes()[0], node.sizes()[-1]
    element = element_of_onnx(node.int("dtype"), "the result of EyeLike") if node.has("dtype") else node.element()
    if isinstance(rows, int) and isinstance(columns, int):
        return node.constant(np.eye(rows, columns, node.int("k", 0), numpy_dtype(element)))
    behind = node.emit(AddOp, iota(node, rows), node.constant([node.int("k", 0)]))
    behind = node.emit(ReshapeOp, behind, shape=(rows, 1))
    return node.emit(CastOp, node.emit(EqualOp, iota(node, columns), behind), to=element)
