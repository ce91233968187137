"""ONNX's operators that make constants: from attributes, from shapes, or from other constants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import onnx
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import scalar_attribute
from glow_mlir.dialects.element_types import ELEMENT_TYPES, element_type, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, EqualOp, MulOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.sizes import HINT
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.slices import iota, scalar
from glow_mlir.frontends.onnx.models.traversal import all_nodes, graphs_inside
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.node import Constants, Node
from glow_mlir.frontends.onnx.values import Strings, Value
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize, product_of, quotient

LARGEST_STORED = 1 << 16
"""
Numbers that take up to this many bytes are constants. If a graph returns more of them, they are computed, which takes
less time than copying them.
"""

ROW = 512
"""The positions in a long range that are the same number from one multiple of it to the next."""

EXACT_IN_F32 = 1 << 24
"""All integers up to this one are f32."""

FEW_ONES = 16
"""The largest number of ones of a matrix that are written one by one."""


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
    numbers = (start.item() + np.arange(count) * delta.item()).astype(start.dtype)
    if count * start.itemsize > LARGEST_STORED and _is_only_returned(node):
        return _long_range(node, numbers, start, delta)
    return node.constant(numbers)


def _is_only_returned(node: Node) -> bool:
    """Whether no node of the graph reads the result. What nodes read is a constant, so that they can be folded."""
    return node.results[0] not in node.finding(_names_read)


def _names_read(nodes: Sequence[onnx.NodeProto], _: Constants) -> frozenset[str]:
    """The names that nodes and their subgraphs read. Outputs of a subgraph may be names of this graph."""
    inside = (output.name for graph in graphs_inside(nodes) for output in graph.output)
    return frozenset(chain((name for node in all_nodes(nodes) for name in node.input), inside))


def _long_range(node: Node, numbers: np.ndarray, start: np.ndarray, delta: np.ndarray) -> SSAValue:
    """
    The numbers `start + i * delta`, computed from the sums of a column and a row of positions if that is exact.

    Integers are, since they wrap, and f64 has the same roundings. Others are computed in f32, if all steps of that are
    integers.
    """
    count, rows = len(numbers), len(numbers) // ROW
    kind = start.dtype
    if is_float_dtype(kind) and kind != np.float64:
        first, step = start.item(), delta.item()
        largest = max(count, abs(first), abs(step) * count, abs(first + step * count))
        if not (first.is_integer() and step.is_integer() and largest <= EXACT_IN_F32):
            return node.constant(numbers)
        kind = np.dtype(np.float32)
    column = node.constant((np.arange(rows) * ROW).astype(kind).reshape(rows, 1))
    positions = node.emit(AddOp, column, node.constant(np.arange(ROW).astype(kind)))
    scaled = node.emit(MulOp, positions, node.constant(delta.astype(kind)))
    computed = node.cast(node.emit(AddOp, scaled, node.constant(start.astype(kind))), element_type(start.dtype))
    parts = [node.emit(ReshapeOp, computed, shape=(rows * ROW,))]
    if count % ROW:
        parts.append(node.constant(numbers[rows * ROW :]))
    return node.emit(ConcatOp, parts, axis=0)


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
        return _eye(node, rows, columns, numpy_dtype(element))
    behind = node.emit(AddOp, iota(node, rows), node.constant([node.int("k", 0)]))
    behind = node.emit(ReshapeOp, behind, shape=(rows, 1))
    return node.emit(CastOp, node.emit(EqualOp, iota(node, columns), behind), to=element)


def _eye(node: Node, rows: int, columns: int, dtype: np.dtype[Any]) -> SSAValue:
    """Ones along the `k`-th diagonal: a constant if it is small, else put together from zeros and repeated rows."""
    k = node.int("k", 0)
    count = min(rows + min(k, 0), columns - max(k, 0))
    if rows * columns * dtype.itemsize <= LARGEST_STORED or count <= 0 or not _is_only_returned(node):
        return node.constant(np.eye(rows, columns, k, dtype))
    begin, position, pitch = -min(k, 0) * columns, max(k, 0), columns + 1
    # In rows that are one element longer, all ones are in the same column.
    repeated = min(count, (rows * columns - begin) // pitch) if count > FEW_ONES else 0
    end = begin + repeated * pitch
    parts = [_filled(node, 0, begin, dtype)]
    if repeated:
        row = node.constant(np.eye(1, pitch, position, dtype))
        parts.append(node.emit(ReshapeOp, node.emit(ExpandOp, row, shape=(repeated, pitch)), shape=(repeated * pitch,)))
    for one in range(end + position, begin + position + count * pitch, pitch):
        parts += [_filled(node, 0, one - end, dtype), _filled(node, 1, 1, dtype)]
        end = one + 1
    parts.append(_filled(node, 0, rows * columns - end, dtype))
    whole = node.emit(ConcatOp, [part for part in parts if part is not None], axis=0)
    return node.emit(ReshapeOp, whole, shape=(rows, columns))


def _filled(node: Node, number: int, count: int, dtype: np.dtype[Any]) -> SSAValue | None:
    """A vector of the same number; `None` if it is empty."""
    return node.splat(number, element_type(dtype), (count,)) if count else None
