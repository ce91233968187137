"""Lowerings of operators on block-quantized weights that no kernel reads directly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from glow_mlir.constants.sub_byte_values import planes_of
from glow_mlir.dialects.element_types import ui4, ui8, ui16
from glow_mlir.dialects.glow_high.blockwise import (
    HALF_BITS,
    LARGEST,
    LOW_BITS,
    BlockwiseDequantizeOp,
    BlockwiseMatMulIntegerOp,
    BlockwiseMatMulOp,
)
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    BitwiseAndOp,
    BitwiseOrOp,
    DivOp,
    EqualOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, BitCastOp, CastOp, RoundOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.dialects.shapes import rank_of, shape_of, size_along, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import Sizes


@lowering(BlockwiseDequantizeOp)
def blockwise_dequantize(op: BlockwiseDequantizeOp, emit: Emitter) -> SSAValue:
    """Unpack the quantized values, subtract zero points, multiply by scales, and add minima."""
    bits, block = integer(op.bits), integer(op.block)
    unpacked = _unpacked(op.codes, bits, emit)
    if op.table is not None:
        table = emit.constant(np.array(ints(op.table), np.float32), "table")
        unpacked = emit(GatherOp, table, emit(CastOp, unpacked, to=i32), axis=0)
    if op.element is not None:
        bare = emit(CastOp, unpacked, to=ui4) if bits < 8 else unpacked
        unpacked = emit(BitCastOp, bare, to=op.element)
    number = emit(CastOp, unpacked, to=f32)
    size = size_along(number, -1)
    scale = _spread(_whole(op.scales, op.scale_factors, emit), block, size, emit)
    if op.element is not None or op.table is not None:
        return emit(MulOp, number, scale)
    if op.minima is not None:
        minimum = _spread(_whole(op.minima, op.minimum_factors, emit), block, size, emit)
        return emit(AddOp, emit(MulOp, number, scale), minimum)
    middle = emit.splat(1 << bits - 1, f32)
    if op.zero_points is not None:
        middle = _spread(emit(CastOp, op.zero_points, to=f32), block, size, emit)
    return emit(MulOp, emit(SubOp, number, middle), scale)


@lowering(BlockwiseMatMulOp)
def product_of_numbers(op: BlockwiseMatMulOp, emit: Emitter) -> SSAValue:
    """
    Round the rows with `left_bits`, for a product of integers; else dequantize the weights in front of a plain product.
    """
    left_bits, weights = integer(op.left_bits), op.quantized()
    if not left_bits:
        return product_of_dequantized(op, emit)
    rows = rounded_rows(op.left, integer(op.block), left_bits, emit)
    if op.element is None:
        return emit(BlockwiseMatMulIntegerOp, *rows, *weights, op.bias, *op.factors(), **op.form())
    numbers = rows.dequantized(integer(op.block), emit)
    return emit(BlockwiseMatMulOp, numbers, *weights, op.bias, *op.factors(), **op.form())


@lowering(BlockwiseMatMulIntegerOp)
def product_of_rounded_numbers(op: BlockwiseMatMulIntegerOp, emit: Emitter) -> SSAValue:
    """Dequantize the rows in front of a product with quantized weights."""
    rows = _rows(op).dequantized(integer(op.block), emit)
    product = emit(BlockwiseMatMulOp, rows, *op.quantized(), op.bias, *op.factors(), **op.form())
    return product if op.table is not None else emit(AddOp, product, _other_sums(op, emit))


def product_of_dequantized(op: BlockwiseMatMulOp | BlockwiseMatMulIntegerOp, emit: Emitter) -> SSAValue:
    """Dequantize rows and weights in front of a plain product."""
    rows: SSAValue = op.left
    if isinstance(op, BlockwiseMatMulIntegerOp):
        rows = _rows(op).dequantized(integer(op.block), emit)
    elif left_bits := integer(op.left_bits):
        rows = rounded_rows(op.left, integer(op.block), left_bits, emit).dequantized(integer(op.block), emit)
    numbers = emit(BlockwiseDequantizeOp, *op.quantized(), *op.factors(), **op.form())
    product = emit(MatMulOp, rows, numbers, op.bias, transpose_right=True)
    if isinstance(op, BlockwiseMatMulIntegerOp) and op.table is None:
        return emit(AddOp, product, _other_sums(op, emit))
    return product


def _rows(op: BlockwiseMatMulIntegerOp) -> RoundedRows:
    """The operands that are rows."""
    return RoundedRows(op.left, op.left_low, op.left_scales, op.left_sums)


def _other_sums(op: BlockwiseMatMulIntegerOp, emit: Emitter) -> SSAValue:
    """
    Zero points, or minima, times the differences of the rows' sums and the given ones: 0 for the sums of the rows.
    """
    values = emit(CastOp, op.left, to=i32)
    if op.left_low is not None:
        high = emit(MulOp, values, emit.splat(1 << LOW_BITS, i32))
        values = emit(AddOp, high, emit(CastOp, op.left_low, to=i32))
    *outer, size = sizes_of(values)
    count = shape_of(op.scales)[1]
    if missing := count * integer(op.block) - size:
        values = emit(PadOp, values, pads=[0] * (2 * len(outer) + 1) + [missing])
    blocks = emit(ReshapeOp, values, shape=(*outer, count, integer(op.block)))
    sums = emit(ReduceSumOp, blocks, axes=[len(outer) + 1], keepdims=False)
    differences, scales = emit(SubOp, sums, op.left_sums), _whole(op.scales, op.scale_factors, emit)
    if op.minima is not None:
        differences, scales = emit(SubOp, op.left_sums, sums), _whole(op.minima, op.minimum_factors, emit)
    elif op.zero_points is None:
        differences = emit(MulOp, differences, emit.splat(1 << integer(op.bits) - 1, i32))
    else:
        scales = emit(MulOp, scales, emit(CastOp, op.zero_points, to=f32))
    scaled = emit(MulOp, emit(CastOp, differences, to=f32), op.left_scales)
    return emit(MatMulOp, scaled, scales, None, transpose_right=True)


def _unpacked(packed: SSAValue, bits: int, emit: Emitter) -> SSAValue:
    """Unpack the quantized values of bytes."""
    if bits == 8:
        return packed
    if bits == HALF_BITS:
        return _halves(packed, emit)
    *outer, size = sizes_of(packed)
    if len(planes := planes_of(bits)) > 1:
        return _joined_planes(packed, planes, emit)
    mask = emit.splat((1 << bits) - 1, ui8)
    parts: list[SSAValue] = []
    for shift in range(0, 8, bits):
        moved = packed
        if shift:
            moved = emit(BitShiftOp, packed, emit.splat(shift, ui8), direction="right")
        parts.append(emit(ReshapeOp, emit(BitwiseAndOp, moved, mask), shape=(*outer, size, 1)))
    joined = emit(ConcatOp, parts, axis=len(outer) + 1)
    return emit(ReshapeOp, joined, shape=(*outer, size * len(parts)))


def _joined_planes(packed: SSAValue, planes: Sequence[int], emit: Emitter) -> SSAValue:
    """Unpack the lowest bits of values and the others, which lie behind them, and join them."""
    size = size_along(packed, -1)
    begin = size * planes[0] // sum(planes)
    low = _unpacked(_cut(packed, 0, begin, emit), planes[0], emit)
    high = _unpacked(_cut(packed, begin, size, emit), planes[1], emit)
    return emit(BitwiseOrOp, low, emit(BitShiftOp, high, emit.splat(planes[0], ui8), direction="left"))


def _halves(packed: SSAValue, emit: Emitter) -> SSAValue:
    """Join each two bytes, the lower one first, to an unsigned integer."""
    *outer, size = sizes_of(packed)
    pairs = emit(CastOp, emit(ReshapeOp, packed, shape=(*outer, size // 2, 2)), to=ui16)
    low, high = (_cut(pairs, begin, begin + 1, emit) for begin in range(2))
    joined = emit(BitwiseOrOp, low, emit(BitShiftOp, high, emit.splat(8, ui16), direction="left"))
    return emit(ReshapeOp, joined, shape=(*outer, size // 2))


def _whole(parameters: SSAValue, factors: SSAValue | None, emit: Emitter) -> SSAValue:
    """The scales or minima of blocks in f32: bytes times their factors, if there are any."""
    numbers = emit(CastOp, parameters, to=f32)
    if factors is None:
        return numbers
    blocks = size_along(parameters, -1)
    spread = _spread(emit(CastOp, factors, to=f32), blocks // size_along(factors, -1), blocks, emit)
    return emit(MulOp, numbers, spread)


def _spread(parameters: SSAValue, block: int, size: int, emit: Emitter) -> SSAValue:
    """Repeat parameters per block for each of `size` elements."""
    *outer, blocks = sizes_of(parameters)
    single = emit(ReshapeOp, parameters, shape=(*outer, blocks, 1))
    repeated = emit(ExpandOp, single, shape=(*outer, blocks, block))
    joined = emit(ReshapeOp, repeated, shape=(*outer, blocks * block))
    return joined if blocks * block == size else _cut(joined, 0, size, emit)


def _cut(value: SSAValue, begin: int, end: int, emit: Emitter) -> SSAValue:
    """Slice the last axis from `begin` to `end`."""
    shape = sizes_of(value)
    zeros = [0] * (len(shape) - 1)
    return emit(SliceOp, value, starts=[*zeros, begin], ends=[*shape[:-1], end], steps=[1] * len(shape))


class RoundedRows(NamedTuple):
    """
    Rows whose blocks are quantized: bytes [batch…, M, K], the low bytes of wider values, and for each block its scale
    and the sum of its values [batch…, M, blocks].
    """

    values: SSAValue
    low: SSAValue | None
    scales: SSAValue
    sums: SSAValue

    def dequantized(self, block: int, emit: Emitter) -> SSAValue:
        """The numbers of the rows, of f32."""
        numbers = emit(CastOp, self.values, to=f32)
        if self.low is not None:
            high = emit(MulOp, numbers, emit.splat(1 << LOW_BITS, f32))
            numbers = emit(AddOp, high, emit(CastOp, self.low, to=f32))
        return emit(MulOp, numbers, _spread(self.scales, block, size_along(numbers, -1), emit))


def rounded_rows(rows: SSAValue, block: int, bits: int, emit: Emitter) -> RoundedRows:
    """Quantize each block of rows [batch…, M, K] to 8 or 15 bits; the last block may be shorter."""
    outer, size = sizes_of(rows)[:-1], size_along(rows, -1)
    whole = size // block * block
    cuts = [(0, whole, block)] * (whole > 0) + [(whole, size, size - whole)] * (whole < size)
    parts: list[RoundedRows] = []
    for begin, end, count in cuts:
        part = rows if end - begin == size else _cut(rows, begin, end, emit)
        blocks = emit(ReshapeOp, part, shape=(*outer, (end - begin) // count, count))
        parts.append(_rounded_blocks(blocks, bits, (*outer, end - begin), emit))
    if len(parts) == 1:
        return parts[0]

    def joined(values: Iterable[SSAValue | None]) -> SSAValue:
        return emit(ConcatOp, [value for value in values if value is not None], axis=len(outer))

    values, low, scales, sums = zip(*parts, strict=True)
    return RoundedRows(joined(values), None if bits == 8 else joined(low), joined(scales), joined(sums))


def _rounded_blocks(blocks: SSAValue, bits: int, shape: Sizes, emit: Emitter) -> RoundedRows:
    """Quantize blocks along the last axis, and give their values the shape of rows."""
    last, largest = rank_of(blocks) - 1, LARGEST[bits]
    peak = emit(ReduceMaxOp, emit(AbsOp, blocks), axes=[last], keepdims=True)
    scale = emit(DivOp, peak, emit.splat(largest, f32))
    zero, one = emit.splat(0, f32), emit.splat(1, f32)
    inverse = emit(WhereOp, emit(EqualOp, scale, zero), zero, emit(DivOp, one, scale))
    numbers = emit(RoundOp, emit(MulOp, blocks, inverse))
    # Of bytes, one loop writes bytes and integers: the numbers themselves need no memory.
    added = emit(CastOp, numbers, to=i8) if bits == 8 else numbers
    sums = emit(ReduceSumOp, emit(CastOp, added, to=i32), axes=[last], keepdims=False)
    scales = emit(ReshapeOp, scale, shape=sizes_of(sums))
    if bits == 8:
        return RoundedRows(emit(ReshapeOp, added, shape=shape), None, scales, sums)
    unit = emit.splat(1 << LOW_BITS, f32)
    high = emit(RoundOp, emit(DivOp, numbers, unit))
    low = emit(SubOp, numbers, emit(MulOp, high, unit))
    values, lower = (emit(ReshapeOp, emit(CastOp, part, to=i8), shape=shape) for part in (high, low))
    return RoundedRows(values, lower, scales, sums)
