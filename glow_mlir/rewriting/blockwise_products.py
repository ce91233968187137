"""Let products and gathers read block-quantized weights directly."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.deferred import Bytes, Deferred
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, pack_sub_bytes
from glow_mlir.dialects.element_types import element_type, is_integer, is_narrow_integer, number_width, storage_of
from glow_mlir.dialects.glow_high.blockwise import (
    FEWEST,
    HALF_BITS,
    WHOLE_WIDTHS,
    BlockwiseDequantizeOp,
    BlockwiseMatMulOp,
)
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, sizes_of
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.policies import is_strict
from glow_mlir.rewriting.quantized_values import untyped


class MultiplyBlocks(Pattern):
    """Replace a product with a dequantized constant matrix by a blockwise product that reads the quantized blocks."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        weights = _blocks(right, _is_turned(op)) if _has_plain_rows(op) else None
        if weights is None or not all(map(rewriter.storage.is_constant, weights.operands)):
            return
        rewriter.replace(
            op, BlockwiseMatMulOp.make(left, *weights.quantized(), op.bias, *weights.factors(), **weights.form())
        )


def _has_plain_rows(op: MatMulOp | FullyConnectedOp) -> bool:
    """Whether the left operand of a product is of f32, and not transposed."""
    return element_of(op.operands[0]) == f32 and not (isinstance(op, MatMulOp) and flag(op.transpose_left))


def _is_turned(op: MatMulOp | FullyConnectedOp) -> bool:
    """Whether the right operand of a product is [N, K]."""
    return isinstance(op, MatMulOp) and flag(op.transpose_right)


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
    Replace a product of few rows with a dequantized constant matrix, or with a large one of widened f16 or bf16, by a
    blockwise product, one block a column.

    The time of such a product is the time to read its weights. There is one scale, or one for each column; zero points
    are subtracted from the values, and floats have the scale 1. A number of rows that is known only at run time counts
    as small. Strict products stay as they are: a blockwise product scales its accumulators last, which may overflow.
    """

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        if not _has_plain_rows(op) or rank_of(right) != 2:
            return
        rows = math.prod(size for size in sizes_of(left)[:-1] if isinstance(size, int))
        costs = costs_of(rewriter.function.target)
        if rank_of(left) < 2 or rows >= costs.dequantizing_rows or is_strict(rewriter.function):
            return
        is_turned, storage = _is_turned(op), rewriter.storage
        columns = _columns(right.owner, is_turned, storage) or _halves(right, is_turned, storage)
        if columns is not None and columns.element == f16 and not rewriter.function.target.halves:
            return  # Each number would be decoded by a dozen instructions.
        if columns is None:
            return
        depth = columns.codes.shape[1] * 8 // columns.bits
        block = max(FEWEST, 1 << (depth - 1).bit_length())
        weights, scales = rewriter.emit.stored(columns.codes, "weights"), rewriter.emit.stored(columns.scales, "scales")
        form: dict[str, Any] = {"bits": columns.bits, "block": block, "element": columns.element}
        rewriter.replace(op, BlockwiseMatMulOp.make(left, weights, scales, None, None, op.bias, **form))


class _Columns(NamedTuple):
    """The bytes of codes [N, K] of `bits` bits, of integers or of an `element`, and scales [N, 1]."""

    codes: np.ndarray | Deferred
    scales: np.ndarray
    bits: int
    element: Attribute | None = None


def _halves(right: SSAValue, is_turned: bool, storage: Storage) -> _Columns | None:
    """The columns of a large constant [K, N], or [N, K] if `is_turned`, of f16 or bf16 that are widened to f32."""
    widened = storage.deferred(right)
    if widened is None:
        return None
    numbers = widened.unwidened if is_turned else widened.transposed((1, 0)).unwidened
    element = element_type(numbers.dtype)
    if element not in (f16, bf16) or 0 in numbers.shape or numbers.shape[1] * HALF_BITS % DOT_GROUP_BITS:
        return None
    return _Columns(Bytes(numbers), np.ones((numbers.shape[0], 1), np.float32), HALF_BITS, element)


def _columns(op: Operation | Block, is_turned: bool, storage: Storage) -> _Columns | None:
    """The columns of a dequantized constant [K, N], or [N, K] if `is_turned`; `None` where no kernel reads them."""
    if not isinstance(op, DequantizeOp) or element_of(op.result) != f32:
        return None
    element = storage_of(element_of(op.input))
    if not (is_integer(element) or is_narrow_integer(element)) or number_width(element) > max(WHOLE_WIDTHS):
        return None
    parameters, values = _parameters(op, storage), storage.value_of(untyped(op.input))
    if parameters is None or values is None or 0 in values.shape or not np.isfinite(parameters[0]).all():
        return None
    count = values.shape[0 if is_turned else 1]
    shape = (count, 1) if is_turned else (1, count)
    if any(array.size > 1 and array.shape != shape for array in parameters):
        return None
    scales, zeros = (np.broadcast_to(array.reshape(-1), (count,)).reshape(count, 1) for array in parameters)
    less = (values if is_turned else values.T).astype(np.int16) - zeros.astype(np.int16)
    low, high = int(less.min()), int(less.max())
    for bits in WHOLE_WIDTHS:
        fits = -(1 << bits - 1) <= low and high < 1 << bits - 1
        if fits and less.shape[1] * bits % DOT_GROUP_BITS == 0:
            codes = (less + (1 << bits - 1)).astype(np.uint8)
            return _Columns(pack_sub_bytes(codes, bits), np.ascontiguousarray(scales, np.float32), bits)
    return None


def _parameters(op: DequantizeOp, storage: Storage) -> tuple[np.ndarray, np.ndarray] | None:
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
        parts = *table.quantized(), *table.factors()
        rows = [None if part is None else rewriter.emit(GatherOp, part, op.indices, axis=axis) for part in parts]
        rewriter.replace(op, BlockwiseDequantizeOp.make(*rows, **table.form()))
