"""`lower-quantization`: lower quantized products to products of stored integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import splat_array
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.quant import UniformQuantizedType, zero_point_of
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.blockwise_products import MultiplyDequantized
from glow_mlir.rewriting.quantized_values import stored_integers
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.lowerings.blockwise import product_of_numbers
from glow_mlir.transforms.lowerings.padding import padded_image

Product = ConvOp | FullyConnectedOp | MatMulOp


class ProductOfIntegers(Pattern):
    """
    Lower a quantized product to an integer product, minus the left zero point times the sum of the right operand.

    The correction is folded into the bias if both are constant. Padding is filled with the zero point. A right zero
    point is subtracted from the operand, in a wider type.
    """

    @rooted
    def match_and_rewrite(self, op: Product, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        if not any(isinstance(element_of(value), UniformQuantizedType) for value in (left, right)):
            return
        emit = rewriter.emit
        zero, shift = zero_point_of(element_of(left)), zero_point_of(element_of(right))
        properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
        if isinstance(op, ConvOp) and zero and any(op.window().pads):
            left = padded_image(op, emit)
            del properties["pads"]
        quantized, weights = stored_integers(left, emit), stored_integers(right, emit)
        if shift:
            wide = i16 if byte_width(element_of(weights)) == 1 else i32
            weights = emit(SubOp, emit(CastOp, weights, to=wide), emit.splat(shift, wide))
            quantized = emit(CastOp, quantized, to=wide)
        bias = _with_zero_point(op, weights, zero, emit)
        sums = emit(ConvOp if isinstance(op, ConvOp) else MatMulOp, quantized, weights, bias or op.bias, **properties)
        if zero and bias is None:
            total = emit(MulOp, _total(op, weights, emit), emit.splat(zero, i32))
            sums = emit(SubOp, sums, total)
        rewriter.replace(op, (), [sums])


def _with_zero_point(op: Product, weights: SSAValue, zero: int, emit: Emitter) -> SSAValue | None:
    """The bias minus the left zero point times the sum of the right operand; `None` if one is not constant."""
    known, added = emit.known(weights) if zero else None, None if op.bias is None else emit.known(op.bias)
    if known is None or (op.bias is not None and added is None) or (not isinstance(op, ConvOp) and known.ndim != 2):
        return None
    is_turned = isinstance(op, ConvOp) or (isinstance(op, MatMulOp) and flag(op.transpose_right))
    axes = tuple(range(1, known.ndim)) if is_turned else (0,)
    total = known.sum(axis=axes, dtype=np.int64) * -zero + (0 if added is None else added)
    return emit.constant(total.astype(np.int32), "bias")


def _total(op: Product, weights: SSAValue, emit: Emitter) -> SSAValue:
    """The sum of the right operand per output channel, in a shape that broadcasts with the result."""
    wide, rank = emit(CastOp, weights, to=i32), rank_of(weights)
    if not isinstance(op, ConvOp):
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        line = emit(ReduceSumOp, wide, axes=[rank - 1 if is_turned else rank - 2], keepdims=True)
        shape = shape_of(line)
        return emit(ReshapeOp, line, shape=(*shape[:-2], 1, shape[-2])) if is_turned else line
    total = emit(ReduceSumOp, wide, axes=list(range(1, rank)), keepdims=False)
    if is_channels_last(op.layout):
        return total
    return emit(ReshapeOp, total, shape=(*shape_of(total), *[1] * (rank - 2)))


class ProductOfRunTimeBlocks(Pattern):
    """Dequantize weight blocks that are not constant: kernels read packed ones."""

    @rooted
    def match_and_rewrite(self, op: BlockwiseMatMulOp, rewriter: Rewriter, /) -> None:
        if not all(map(rewriter.storage.is_constant, _weights(op))):
            rewriter.replace(op, (), [product_of_numbers(op, rewriter.emit)])


class StoreSplats(Pattern):
    """Turn splat weights, scales and zero points of a blockwise product into constants: kernels read packed ones."""

    @rooted
    def match_and_rewrite(self, op: BlockwiseMatMulOp, rewriter: Rewriter, /) -> None:
        for position, value in enumerate(op.operands):
            if isinstance(value.owner, SplatOp) and value in _weights(op):
                name = value.name_hint or "weights"
                op.operands[position] = rewriter.emit.stored(splat_array(value.owner), name)
                rewriter.notify_op_modified(op)


def _weights(op: BlockwiseMatMulOp) -> Sequence[SSAValue]:
    """The operands that make up the weights."""
    return [value for value in (op.codes, op.scales, op.zero_points) if value is not None]


@dataclass(frozen=True)
class LowerQuantizationPass(PatternPass):
    """
    Lower quantized products to products of stored integers, which kernels execute, plus corrections that are constant
    if the right operand is (paper §4.5).

    Products with non-constant blocks become float products, and products of few rows with dequantized constants
    blockwise products.
    """

    name = "lower-quantization"
    WALKS = (Walk((ProductOfIntegers(), ProductOfRunTimeBlocks(), MultiplyDequantized(), StoreSplats())),)
