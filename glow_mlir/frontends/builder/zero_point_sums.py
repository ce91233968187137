"""Sums of quantized values, which correct products of stored integers for the zero point of the other operand."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.pooling import SumPoolOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.emission import OperatorEmitter

MIN_COLUMNS = 8
"""The least number of columns of a product for which sums of the rows of its left operand are cheap beside it."""


def row_sums(left: SSAValue, transposed: bool, emit: OperatorEmitter) -> SSAValue:
    """The i32 sums [batch…, M, 1] of the rows of the left operand of a product, or of its columns if `transposed`."""
    rank = rank_of(left)
    axis = rank - 2 if transposed else rank - 1
    total = emit(ReduceSumOp, emit(CastOp, left, to=i32), axes=[axis], keepdims=True)
    *batch, one, rows = sizes_of(total)
    return emit(ReshapeOp, total, shape=(*batch, rows, one)) if transposed else total


def window_sums(
    image: SSAValue,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    filters: int,
    groups: int,
    emit: OperatorEmitter,
) -> SSAValue:
    """
    The i32 sum of what each of `filters` filters reads of a channels-last image without padding.

    The result has one channel if there is one group, else one for each filter.
    """
    *outer, channels = sizes_of(image)
    wide = emit(CastOp, image, to=i32)
    if groups > 1:
        assert isinstance(channels, int), "groups divide a known number of channels"
        wide = emit(ReshapeOp, wide, shape=(*outer, groups, channels // groups))
    total = emit(ReduceSumOp, wide, axes=[rank_of(wide) - 1], keepdims=groups == 1)
    if any(size != 1 for size in (*kernel, *strides)):
        total = emit(SumPoolOp, total, kernel_shape=kernel, strides=strides, dilations=dilations)
    if groups == 1:
        return total
    outer = sizes_of(total)[:-1]
    apart = emit(ReshapeOp, total, shape=(*outer, groups, 1))
    return emit(ReshapeOp, emit(ExpandOp, apart, shape=(*outer, groups, filters // groups)), shape=(*outer, filters))
