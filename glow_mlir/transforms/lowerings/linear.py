"""Lowerings of matrix products."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, is_float
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, GroupedMatMulOp, MatMulOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import element_of, has_static_shape, is_empty, rank_of, shape_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering


@lowering(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, emit: Emitter) -> SSAValue:
    """A matrix product with a bias (Glow lowers to MatMul and BatchedAdd)."""
    return emit(MatMulOp, op.input, op.weights, op.bias, to=op.to)


@lowering(MatMulOp)
def matmul(op: MatMulOp, emit: Emitter) -> SSAValue:
    """
    Transpose operands in front of the product; an empty sum is 0.

    A product rounded to narrow floats becomes an f32 product and a conversion. Narrow operands with a run-time size are
    widened to the accumulator type first.
    """
    element = element_of(op.result)
    if is_empty(op.left) or is_empty(op.right):
        return _sum_of_nothing(op, emit)
    if is_float(element) and byte_width(element) < 4:
        flags = {name: op.properties[name] for name in ("transpose_left", "transpose_right")}
        bias = None if op.bias is None else emit(CastOp, op.bias, to=f32)
        return emit(CastOp, emit(MatMulOp, op.left, op.right, bias, to=f32, **flags), to=element)
    left = _swapped(op.left, emit) if flag(op.transpose_left) else op.left
    right = _swapped(op.right, emit) if flag(op.transpose_right) else op.right
    if not has_static_shape(right) and all(map(_is_narrow, (left, right))):
        wide = [emit(CastOp, operand, to=element) for operand in (left, right)]
        return emit(MatMulOp, *wide, op.bias)
    return emit(MatMulOp, left, right, op.bias, to=op.to)


@lowering(GroupedMatMulOp)
def grouped_matmul(op: GroupedMatMulOp, emit: Emitter) -> SSAValue:
    """
    Gather a matrix for each row, and multiply the batch.

    A product rounded to narrow floats becomes an f32 product and a conversion.
    """
    element, turned = element_of(op.result), flag(op.transpose_weights)
    if is_float(element) and byte_width(element) < 4:
        bias = None if op.bias is None else emit(CastOp, op.bias, to=f32)
        sums = emit(GroupedMatMulOp, op.input, op.weights, op.index, bias, transpose_weights=turned, to=f32)
        return emit(CastOp, sums, to=element)
    rows, depth = sizes_of(op.input)
    matrices = emit(GatherOp, op.weights, op.index, axis=0)
    single = emit(ReshapeOp, op.input, shape=(rows, 1, depth))
    product = emit(MatMulOp, single, matrices, transpose_right=turned, to=op.to)
    result = emit(ReshapeOp, product, shape=sizes_of(op.result))
    return result if op.bias is None else emit(AddOp, result, emit(GatherOp, op.bias, op.index, axis=0))


def _is_narrow(value: SSAValue) -> bool:
    """Whether elements are narrower than 32 bits, and not quantized."""
    element = element_of(value)
    return byte_width(element) < 4 and not isinstance(element, UniformQuantizedType)


def _sum_of_nothing(op: MatMulOp, emit: Emitter) -> SSAValue:
    zeros = emit.splat(0, op.result, shape_of(op.result))
    return zeros if op.bias is None else emit(AddOp, zeros, op.bias)


def _swapped(value: SSAValue, emit: Emitter) -> SSAValue:
    rank = rank_of(value)
    return emit(TransposeOp, value, permutation=(*range(rank - 2), rank - 1, rank - 2))
