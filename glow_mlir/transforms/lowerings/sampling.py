"""Lowering of deformable convolutions to sampling and a matrix product."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.sampling import DeformColumnsOp, DeformConvOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import shape_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import product_of


@lowering(DeformConvOp)
def deform_conv(op: DeformConvOp, emit: Emitter) -> SSAValue:
    """Make the sampled elements of each window a row, and multiply once per group of channels."""
    window = op.window()
    columns = emit(
        DeformColumnsOp,
        op.input,
        op.offset,
        op.mask,
        strides=window.strides,
        pads=window.pads,
        dilations=window.dilations,
        offset_group=integer(op.offset_group),
        kernel_shape=window.kernel,
    )
    shape, group, filters = sizes_of(op.result), integer(op.group), shape_of(op.filter)[0]
    rows, elements, depth = product_of(shape[:-1]), op.elements(window), shape_of(op.filter)[-1]
    if group == 1:
        left = emit(ReshapeOp, columns, shape=(rows, elements * depth))
        right = emit(ReshapeOp, op.filter, shape=(filters, elements * depth))
        return emit(ReshapeOp, emit(MatMulOp, left, right, op.bias, transpose_right=True), shape=shape)
    left = emit(ReshapeOp, columns, shape=(rows, elements, group, depth))
    left = emit(ReshapeOp, emit(TransposeOp, left, permutation=(2, 0, 1, 3)), shape=(group, rows, elements * depth))
    right = emit(ReshapeOp, op.filter, shape=(group, filters // group, elements * depth))
    product = emit(TransposeOp, emit(MatMulOp, left, right, transpose_right=True), permutation=(1, 0, 2))
    result = emit(ReshapeOp, product, shape=shape)
    return result if op.bias is None else emit(AddOp, result, op.bias)
