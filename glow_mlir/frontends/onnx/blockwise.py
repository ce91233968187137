"""Weights in blocks of narrow codes: onnxruntime's MatMulNBits, and ONNX's DequantizeLinear with `block_size`."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.constants.codes import unpack_codes
from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.blockwise import WIDTHS, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of, size_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.onnx.integer_operators import DOMAIN
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator

ROUNDED = 4
"""The `accuracy_level` from which on rows are rounded to codes of 8 bits."""


@onnx_operator("MatMulNBits", domain=DOMAIN)
def matmul_nbits(node: Node) -> SSAValue:
    """A product with weights [N, K] in blocks of codes; each row of codes is filled up to whole blocks."""
    bits, block, columns, depth = (node.int(name, default) for name, default in _SIZES)
    if bits not in WIDTHS:
        raise node.unsupported(f"codes of {bits} bits are not supported, but of {', '.join(map(str, WIDTHS))}")
    if node.int("weight_prepacked", 0):
        raise node.unsupported("weights that are packed for a kernel of onnxruntime are not supported")
    blocks = -(-depth // block)
    _check_order(node, depth, block)
    codes = _reshaped(node, 1, (columns, blocks * block * bits // 8))
    parameters = [_reshaped(node, 2, (columns, blocks)), _zero_points(node, columns, blocks, bits)]
    widths = {"bits": bits, "block": block}
    left, bias = _as_f32(node, node.input(0)), node.optional(5)
    added = None if bias is None else _as_f32(node, bias)
    if rank_of(left) == 1:
        left = node.emit(ReshapeOp, left, shape=(1, *shape_of(left)))
    if depth * bits % 8:
        # The last byte of a row has codes that there are not.
        weights = node.emit(BlockwiseDequantizeOp, codes, *parameters, **widths)
        result = node.emit(MatMulOp, left, _cut(node, weights, depth), added, transpose_right=True)
    else:
        codes = _cut(node, codes, depth * bits // 8)
        left_bits = 8 * (node.int("accuracy_level", 0) >= ROUNDED)
        result = node.emit(BlockwiseMatMulOp, left, codes, *parameters, added, **widths, left_bits=left_bits)
    if node.rank(0) == 1:
        result = node.emit(ReshapeOp, result, shape=(columns,))
    return result if element_of(result) == node.element(0) else node.emit(CastOp, result, to=node.element(0))


_SIZES = (("bits", 4), ("block_size", None), ("N", None), ("K", None))
"""Attributes that are sizes, and their defaults."""


def _check_order(node: Node, depth: int, block: int) -> None:
    """Raise `UnsupportedError` where elements of a row do not belong to blocks in their order."""
    if node.optional(4) is None:
        return
    groups = node.array(4, "the order of groups").reshape(-1)
    if not np.array_equal(groups, np.arange(depth) // block):
        raise node.unsupported("elements of a row that belong to blocks in another order (g_idx) are not supported")


def _reshaped(node: Node, position: int, shape: tuple[int, ...]) -> SSAValue:
    """An operand in another shape."""
    value = node.input(position)
    if size_of(value) != shape[0] * shape[1]:
        reason = f"{node.kind}: operand {position} has the shape {shape_of(value)}, which does not fit {shape}"
        raise ModelError(reason, node=node.name, hint="check N, K, bits and block_size")
    return node.emit(ReshapeOp, value, shape=shape)


def _zero_points(node: Node, columns: int, blocks: int, bits: int) -> SSAValue | None:
    """The zero points of blocks, one by one: they may be side by side in bytes, each row filled up."""
    value = node.optional(3)
    if value is None or element_of(value) != ui8 or bits == 8:
        return None if value is None else _reshaped(node, 3, (columns, blocks))
    packed = node.array(3, "the zero points")
    width = -(-blocks * bits // 8)
    if packed.size != columns * width:
        reason = f"{node.kind}: the zero points have the shape {packed.shape}, not {(columns, width)}"
        raise ModelError(reason, node=node.name, hint="check N, K, bits and block_size")
    return node.constant(np.ascontiguousarray(unpack_codes(packed.reshape(columns, width), bits)[:, :blocks]))


def _as_f32(node: Node, value: SSAValue) -> SSAValue:
    return value if element_of(value) == f32 else node.emit(CastOp, value, to=f32)


def _cut(node: Node, value: SSAValue, size: int) -> SSAValue:
    """The first elements of each row of a matrix."""
    rows, width = shape_of(value)
    return value if size == width else node.emit(SliceOp, value, starts=[0, 0], ends=[rows, size], steps=[1, 1])
