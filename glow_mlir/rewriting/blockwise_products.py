"""Let products and gathers read block-quantized weights directly."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, pack_sub_bytes
from glow_mlir.dialects.element_types import is_integer, is_narrow_integer, is_unsigned, number_width, storage_of
from glow_mlir.dialects.glow_high.blockwise import FEWEST, WIDTHS, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, sizes_of
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter


class MultiplyBlocks(Pattern):
    """Replace a product with a dequantized constant matrix by a blockwise product that reads the quantized blocks."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        weights = _blocks(right, is_turned)
        if weights is None or element_of(left) != f32 or (isinstance(op, MatMulOp) and flag(op.transpose_left)):
            return
        if not all(map(rewriter.storage.is_constant, weights.operands)):
            return
        operands = left, weights.codes, weights.scales, weights.zero_points, op.bias
        rewriter.replace(op, BlockwiseMatMulOp.make(*operands, **weights.form()))


def _blocks(right: SSAValue, is_turned: bool) -> BlockwiseDequantizeOp | None:
    """The dequantized [N, K] behind a right operand: the operand itself if `is_turned`, else its transpose."""
    value = right
    if not is_turned:
        if not isinstance(right.owner, TransposeOp) or ints(right.owner.permutation) != (1, 0):
            return None
        value = right.owner.input
    found = value.owner
    return found if isinstance(found, BlockwiseDequantizeOp) and rank_of(value) == 2 else None


class MultiplyDequantized(Pattern):
    """
    Replace a product of few rows with a dequantized constant matrix by a blockwise product, one block a column.

    Reading the weights is all that such a product takes time for. Scales and zero points are one number, or one for
    each column. Rows whose number is known at run time only may be few.
    """

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        if element_of(left) != f32 or rank_of(right) != 2 or (isinstance(op, MatMulOp) and flag(op.transpose_left)):
            return
        rows = [size for size in sizes_of(left)[:-1] if isinstance(size, int)]
        if rank_of(left) < 2 or math.prod(rows) > costs_of(rewriter.function.target).dequantizing_rows:
            return
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        weights = _columns(right.owner, is_turned, rewriter.storage)
        if weights is None:
            return
        emit, bits = rewriter.emit, weights.bits
        zeros = None if (weights.zeros == 1 << bits - 1).all() else emit.constant(weights.zeros, "zero_points")
        parts = emit.constant(pack_sub_bytes(weights.values, bits), "weights"), emit.constant(weights.scales, "scales")
        block = max(FEWEST, 1 << (weights.values.shape[1] - 1).bit_length())
        rewriter.replace(op, BlockwiseMatMulOp.make(left, *parts, zeros, op.bias, bits=bits, block=block))


class _Columns(NamedTuple):
    """Unsigned values [N, K] of `bits` bits, one a byte, with scales and zero points [N, 1]."""

    values: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    bits: int


def _columns(op: Operation | Block, is_turned: bool, storage: Storage) -> _Columns | None:
    """The columns of a dequantized constant [K, N], or [N, K] if `is_turned`; `None` where no kernel reads them."""
    if not isinstance(op, DequantizeOp) or element_of(op.result) != f32:
        return None
    element = storage_of(element_of(op.input))
    source = op.input.owner.input if isinstance(op.input.owner, StorageCastOp) else op.input
    bits = number_width(element) if is_integer(element) or is_narrow_integer(element) else 0
    if bits not in WIDTHS or not storage.is_constant(source):
        return None
    quantized = known_scales(op, storage)
    values = storage.value_of(source)
    if quantized is None or values is None:
        return None
    order = slice(None) if is_turned else slice(None, None, -1)
    columns, depth = values.shape[order]
    shape = (columns, 1) if is_turned else (1, columns)
    if depth * bits % DOT_GROUP_BITS or any(array.size > 1 and array.shape != shape for array in quantized):
        return None
    shift = 0 if is_unsigned(element) else 1 << bits - 1
    scales, zeros = (np.broadcast_to(array.reshape(-1), (columns,)).reshape(columns, 1) for array in quantized)
    unsigned = (values.astype(np.int16) + shift).astype(np.uint8)
    return _Columns(
        np.ascontiguousarray(unsigned if is_turned else unsigned.T),
        np.ascontiguousarray(scales, np.float32),
        (zeros.astype(np.int16) + shift).astype(np.uint8),
        bits,
    )


def known_scales(op: DequantizeOp, storage: Storage) -> tuple[np.ndarray, np.ndarray] | None:
    """Scales and zero points of a dequantization; `None` where they are known only at run time."""
    if op.scale is None:
        known = parameters_of(element_of(op.input))
        assert known is not None
        return np.asarray(known[0], np.float32), np.asarray(known[1])
    scales = storage.value_of(op.scale)
    zeros = np.zeros((), np.int8) if op.zero_point is None else storage.value_of(op.zero_point)
    return None if scales is None or zeros is None else (scales, zeros)


class GatherBlocks(Pattern):
    """Gather rows of quantized blocks, then dequantize them, instead of gathering dequantized rows."""

    @rooted
    def match_and_rewrite(self, op: GatherOp, rewriter: Rewriter, /) -> None:
        table = op.input.owner
        if not isinstance(table, BlockwiseDequantizeOp):
            return
        rank = rank_of(op.input)
        axis = normalize_axis(integer(op.axis), rank)
        if axis == rank - 1:
            return
        parts = (table.codes, table.scales, table.zero_points)
        rows = [None if part is None else rewriter.emit(GatherOp, part, op.indices, axis=axis) for part in parts]
        rewriter.replace(op, BlockwiseDequantizeOp.make(*rows, **table.form()))
