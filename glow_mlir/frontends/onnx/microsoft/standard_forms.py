"""Operators of ONNX that onnxruntime also has in its own domain, and variants of some others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.constants.sub_byte_values import unpack_sub_bytes
from glow_mlir.dialects.expressions import Tensor, reduce_sum
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import SqrtOp
from glow_mlir.dialects.glow_high.indexing import GatherNDOp, GatherOp
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.dialects.sizes import static
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.generics import computed
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.constants import range_
from glow_mlir.frontends.onnx.operators.data_movement import pad_operands
from glow_mlir.frontends.onnx.operators.indexing import trilu
from glow_mlir.frontends.onnx.operators.quantization import dequantize_linear, quantize_linear
from glow_mlir.frontends.onnx.operators.sampling import grid_sample_of_images
from glow_mlir.ir.registry import onnx_operator

_SAME: Mapping[str, Callable[[Node], Any]] = {
    "DequantizeLinear": dequantize_linear,
    "GridSample": grid_sample_of_images,
    "Pad": pad_operands,
    "QuantizeLinear": quantize_linear,
    "Trilu": trilu,
}
"""Name → the importer of ONNX's operator of the same name."""

for _name, _importer in _SAME.items():
    onnx_operator(_name, domain=ONNXRUNTIME)(_importer)


@onnx_operator("GatherND", domain=ONNXRUNTIME)
def gather_nd(node: Node) -> SSAValue:
    """Gather slices, without batch axes."""
    return node.emit(GatherNDOp, node.input(0), node.input(1))


@onnx_operator("Range", domain=ONNXRUNTIME)
def range_by_one(node: Node) -> SSAValue:
    """ONNX's Range, with a default step of 1."""
    if node.optional(2) is None:
        node.inputs = [*node.inputs[:2], node.constant(1, like=node.input(0))]
    return range_(node)


@onnx_operator("ExpandDims", domain=ONNXRUNTIME)
def expand_dims(node: Node) -> SSAValue:
    """Insert an axis of size one."""
    given = node.integers(1, "the axis")
    if len(given) != 1:
        raise ModelError(f"{node.kind}: {len(given)} axes are not one", node=node.name)
    axis = normalize_axis(given[0], node.rank() + 1)
    return node.emit(ReshapeOp, node.input(), shape=(*node.sizes()[:axis], 1, *node.sizes()[axis:]))


@onnx_operator("CDist", domain=ONNXRUNTIME)
def cdist(node: Node) -> SSAValue:
    """The distances between all rows of two matrices."""
    metric = node.text("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise node.unsupported(f"the metric '{metric}' is not supported, only euclidean and sqeuclidean")
    for position in range(2):
        node.check_rank(position, (2,), "both are matrices")
    columns = node.emit(TransposeOp, node.input(1), permutation=(1, 0))
    squares = computed(node, _DISTANCES, _squares, node.input(0), columns)
    return squares if metric == "sqeuclidean" else node.emit(SqrtOp, squares)


_DISTANCES = Signature.parse("x[row, k], y[k, column] -> distance[row, column]")
"""The second matrix is transposed: neighbouring distances are in the lanes of a vector."""


def _squares(x: Tensor, y: Tensor) -> Tensor:
    difference = x - y
    return reduce_sum(difference * difference, "k")


@onnx_operator("MatMulInteger16", domain=ONNXRUNTIME)
def matmul_integer16(node: Node) -> SSAValue:
    """The i32 product of integers."""
    return numpy_product(node, node.cast(node.input(0), i32), node.cast(node.input(1), i32))


@onnx_operator("UnfoldTensor", domain=ONNXRUNTIME)
def unfold_tensor(node: Node) -> SSAValue:
    """Sliding windows along an axis, whose elements are along a new last axis."""
    axis, size, step = normalize_axis(node.int("dim", -1), node.rank()), node.int("size"), node.int("step", 1)
    (length,) = static((node.sizes()[axis],))
    if not 0 < size <= length or step < 1:
        hint = "size is at least 1, and at most the size of the axis"
        raise ModelError(f"{node.kind}: slices of {size} by {step} of {length}", node=node.name, hint=hint)
    starts = np.arange(0, length - size + 1, step)
    rows = node.emit(GatherOp, node.input(), node.constant(starts[:, None] + np.arange(size)), axis=axis)
    order = [*range(axis + 1), *range(axis + 2, node.rank() + 1), axis + 1]
    return node.emit(TransposeOp, rows, permutation=order)


# ---- 4-bit weights with lookup tables

_TABLES: Sequence[Sequence[float]] = (
    (0.0, 0.00520833, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25),
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
        *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
        *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
)
"""The numbers of 4-bit quantized values: floats without the sign, and quantiles of the normal distribution."""


@onnx_operator("MatMulBnb4", domain=ONNXRUNTIME)
def matmul_bnb4(node: Node) -> SSAValue:
    """A product with weights [N, K] of 4-bit quantized values, scaled by the largest magnitude of each block."""
    columns, depth, block = (node.int(name) for name in ("N", "K", "block_size"))
    kind = node.int("quant_type")
    if kind not in (0, 1):
        raise node.unsupported(f"weights of the kind {kind} are not supported, only 0 and 1")
    packed, largest = node.content(1, "the weights").reshape(-1), node.content(2, "the scales").reshape(-1)
    count = columns * depth
    if packed.dtype.itemsize != 1:
        raise ModelError(f"{node.kind}: weights of {packed.dtype} are not bytes", node=node.name)
    if min(columns, depth, block) < 1 or packed.size != -(-count // 2) or largest.size != -(-count // block):
        reason = f"{node.kind}: {packed.size} bytes and {largest.size} scales do not fit {columns} rows of {depth}"
        raise ModelError(reason, node=node.name, hint="check N, K and block_size")
    table = np.array(_TABLES[kind], np.float32)
    table = table if kind else np.concatenate([table, -table])
    # The first of two quantized values in a byte is in the high bits.
    quantized = unpack_sub_bytes(packed.view(np.uint8), 4).reshape(-1, 2)[:, ::-1].reshape(-1)[:count]
    scales = np.repeat(largest.astype(np.float32), block)[:count]
    weights = (table[quantized] * scales).reshape(columns, depth).astype(largest.dtype)
    weights = weights.T if node.flag("transB", True) else weights
    return numpy_product(node, node.input(), node.constant(np.ascontiguousarray(weights)))
