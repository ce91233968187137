"""Lowerings of operators on block-quantized weights that no kernel reads directly."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ui4, ui8
from glow_mlir.dialects.glow_high.blockwise import BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    BitShiftOp,
    BitwiseAndOp,
    DivOp,
    EqualOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, BitCastOp, CastOp, RoundOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import rank_of, size_along, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering


@lowering(BlockwiseDequantizeOp)
def blockwise_dequantize(op: BlockwiseDequantizeOp, emit: Emitter) -> SSAValue:
    """Unpack the quantized values, subtract zero points, and multiply by scales."""
    bits, block = integer(op.bits), integer(op.block)
    unpacked = _unpacked(op.codes, bits, emit)
    if op.element is not None:
        bare = unpacked if bits == 8 else emit(CastOp, unpacked, to=ui4)
        unpacked = emit(BitCastOp, bare, to=op.element)
    number = emit(CastOp, unpacked, to=f32)
    size = size_along(number, -1)
    scale = _spread(emit(CastOp, op.scales, to=f32), block, size, emit)
    if op.element is not None:
        return emit(MulOp, number, scale)
    middle = emit.splat(1 << bits - 1, f32)
    if op.zero_points is not None:
        middle = _spread(emit(CastOp, op.zero_points, to=f32), block, size, emit)
    return emit(MulOp, emit(SubOp, number, middle), scale)


@lowering(BlockwiseMatMulOp)
def product_of_numbers(op: BlockwiseMatMulOp, emit: Emitter) -> SSAValue:
    """Dequantize the weights in front of a plain product; rows with `left_bits` are rounded first."""
    if integer(op.left_bits):
        rows = _rounded(op.left, integer(op.block), emit)
        return emit(BlockwiseMatMulOp, rows, op.codes, op.scales, op.zero_points, op.bias, **op.form())
    weights = emit(BlockwiseDequantizeOp, op.codes, op.scales, op.zero_points, **op.form())
    return emit(MatMulOp, op.left, weights, op.bias, transpose_right=True)


def _unpacked(packed: SSAValue, bits: int, emit: Emitter) -> SSAValue:
    """Unpack the quantized values of bytes."""
    if bits == 8:
        return packed
    *outer, size = sizes_of(packed)
    mask = emit.splat((1 << bits) - 1, ui8)
    parts: list[SSAValue] = []
    for shift in range(0, 8, bits):
        moved = packed
        if shift:
            moved = emit(BitShiftOp, packed, emit.splat(shift, ui8), direction="right")
        parts.append(emit(ReshapeOp, emit(BitwiseAndOp, moved, mask), shape=(*outer, size, 1)))
    joined = emit(ConcatOp, parts, axis=len(outer) + 1)
    return emit(ReshapeOp, joined, shape=(*outer, size * len(parts)))


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


def _rounded(rows: SSAValue, block: int, emit: Emitter) -> SSAValue:
    """Quantize each block of rows to 8 bits, and dequantize it."""
    outer, size = sizes_of(rows)[:-1], size_along(rows, -1)
    whole = size // block * block
    parts = [(0, whole, block)] * (whole > 0) + [(whole, size, size - whole)] * (whole < size)
    found: list[SSAValue] = []
    for begin, end, count in parts:
        part = rows if end - begin == size else _cut(rows, begin, end, emit)
        blocks = emit(ReshapeOp, part, shape=(*outer, (end - begin) // count, count))
        found.append(emit(ReshapeOp, _rounded_blocks(blocks, emit), shape=(*outer, end - begin)))
    return found[0] if len(found) == 1 else emit(ConcatOp, found, axis=len(outer))


def _rounded_blocks(blocks: SSAValue, emit: Emitter) -> SSAValue:
    """Quantize blocks along the last axis to 8 bits, and dequantize them."""
    peak = emit(ReduceMaxOp, emit(AbsOp, blocks), axes=[rank_of(blocks) - 1], keepdims=True)
    scale = emit(DivOp, peak, emit.splat(127, f32))
    zero, one = emit.splat(0, f32), emit.splat(1, f32)
    inverse = emit(WhereOp, emit(EqualOp, scale, zero), zero, emit(DivOp, one, scale))
    return emit(MulOp, emit(RoundOp, emit(MulOp, blocks, inverse)), scale)
