"""`lower-quantization`: lower quantized products to products of stored integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.ir import SSAValue

from glow_mlir.backends.interface import costs_of
from glow_mlir.constants.signed_weights import signed_weights
from glow_mlir.constants.storage import splat_array
from glow_mlir.constants.table_entries import BYTE_BITS, TableEntries
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import byte_width, ui8
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulIntegerOp, BlockwiseMatMulOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import BitwiseXorOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp, CastOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import flag, integer, ints
from glow_mlir.dialects.quant import UniformQuantizedType, zero_point_of
from glow_mlir.dialects.shapes import element_of, has_static_shape, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.frontends.builder.zero_point_sums import MIN_COLUMNS, row_sums, window_sums
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.blockwise_products import MultiplyDequantized
from glow_mlir.rewriting.quantized_values import stored_integers, untyped
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.lowerings.blockwise import product_of_dequantized
from glow_mlir.transforms.lowerings.padding import padded_image

Product = ConvOp | FullyConnectedOp | MatMulOp
BlockwiseProduct = BlockwiseMatMulOp | BlockwiseMatMulIntegerOp


class ProductOfIntegers(Pattern):
    """
    Lower a quantized product to an integer product, minus the left zero point times the sum of the right operand, and
    minus the right zero point times the sums of the left operand.

    The first correction is folded into the bias if right operand and bias are constant. Padding is filled with the zero
    point. Right operands of u8 become such of i8, which instructions for dot products need.
    """

    @rooted
    def match_and_rewrite(self, op: Product, rewriter: Rewriter, /) -> None:
        left, right = op.operands[:2]
        emit = rewriter.emit
        if any(isinstance(element_of(value), UniformQuantizedType) for value in (left, right)):
            quantized, weights = stored_integers(left, emit), stored_integers(untyped(right), emit)
        elif element_of(right) == ui8 and _sums_are_cheap(op) and _is_worth_shifting(op, rewriter):
            quantized, weights = left, right
        else:
            return
        zero, shift = zero_point_of(element_of(left)), zero_point_of(element_of(right))
        properties = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
        if byte_width(element_of(weights)) == 1 and _sums_are_cheap(op):
            weights, shift = _signed(op, weights, shift, rewriter)
        elif shift:
            wide = i16 if byte_width(element_of(weights)) == 1 else i32
            weights, shift = emit(SubOp, emit(CastOp, weights, to=wide), emit.splat(shift, wide)), 0
            quantized = emit(CastOp, quantized, to=wide)
        if isinstance(op, ConvOp) and (zero or shift) and any(op.window().pads):
            padded = stored_integers(padded_image(op, emit), emit)
            is_wide = element_of(padded) != element_of(quantized)
            quantized = emit(CastOp, padded, to=element_of(quantized)) if is_wide else padded
            del properties["pads"]
        bias = _with_zero_point(op, weights, zero, shift, emit)
        kind = ConvOp if isinstance(op, ConvOp) else MatMulOp
        sums = emit(kind, quantized, weights, op.bias if bias is None else bias, **properties)
        if zero and bias is None:
            less = _total(op, weights, emit)
            if shift:
                less = emit(SubOp, less, emit.splat(_depth(op) * shift, i32))
            sums = emit(SubOp, sums, emit(MulOp, less, emit.splat(zero, i32)))
        if shift:
            sums = emit(SubOp, sums, emit(MulOp, _left_sums(op, quantized, emit), emit.splat(shift, i32)))
        rewriter.replace(op, (), [sums])


def _sums_are_cheap(op: Product) -> bool:
    """Whether a product has so many columns, or a convolution filters and channels, that sums of the left are cheap."""
    if not has_static_shape(op.operands[1]):
        return False
    if not isinstance(op, ConvOp):
        return largest(sizes_of(op.results[0])[-1]) >= MIN_COLUMNS
    filters, *_, channels = shape_of(op.filter)
    return is_channels_last(op.layout) and filters // integer(op.group) >= MIN_COLUMNS and channels > 1


def _is_worth_shifting(op: Product, rewriter: Rewriter) -> bool:
    """Whether a right operand of u8 is constant, or multiplied by so many rows that a copy costs little."""
    if rewriter.storage.is_constant(op.operands[1]) or isinstance(op, ConvOp):
        return True
    rows = math.prod(map(largest, sizes_of(op.results[0])[:-1]))
    return rows >= costs_of(rewriter.function.target).shifting_rows


def _signed(op: Product, weights: SSAValue, shift: int, rewriter: Rewriter) -> tuple[SSAValue, int]:
    """A right operand of bytes and its zero point as one of i8."""
    emit = rewriter.emit
    known = emit.known(weights)
    if known is not None and known.size:
        array, zero = signed_weights(known, np.asarray(shift))
        same = array is known
        return (weights if same else emit.stored(array, weights.name_hint or "weights")), int(zero)
    if element_of(weights) != ui8 or not _is_worth_shifting(op, rewriter):
        return weights, shift
    return emit(BitwiseXorOp, emit(BitCastOp, weights, to=i8), emit.splat(-128, i8)), shift - 128


def _depth(op: Product) -> int:
    """The number of products in each sum."""
    shape = shape_of(op.operands[1])
    if isinstance(op, ConvOp):
        return math.prod(shape[1:])
    return shape[-1 if isinstance(op, MatMulOp) and flag(op.transpose_right) else -2]


def _left_sums(op: Product, quantized: SSAValue, emit: Emitter) -> SSAValue:
    """The sum of the left operand for each result, in a shape that broadcasts with the result."""
    if not isinstance(op, ConvOp):
        return row_sums(quantized, isinstance(op, MatMulOp) and flag(op.transpose_left), emit)
    window = op.window()
    filters, groups = shape_of(op.filter)[0], integer(op.group)
    return window_sums(quantized, window.kernel, window.strides, window.dilations, filters, groups, emit)


def _with_zero_point(op: Product, weights: SSAValue, zero: int, shift: int, emit: Emitter) -> SSAValue | None:
    """
    The bias minus the left zero point times the sum of the right operand less its zero point; `None` if one is not
    constant.
    """
    known, added = emit.known(weights) if zero else None, None if op.bias is None else emit.known(op.bias)
    if known is None or (op.bias is not None and added is None) or (not isinstance(op, ConvOp) and known.ndim != 2):
        return None
    is_turned = isinstance(op, ConvOp) or (isinstance(op, MatMulOp) and flag(op.transpose_right))
    axes = tuple(range(1, known.ndim)) if is_turned else (0,)
    total = (known.sum(axis=axes, dtype=np.int64) - _depth(op) * shift) * -zero + (0 if added is None else added)
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
    """Dequantize weight blocks that are not constant, and rows beside them: kernels read packed ones."""

    @rooted
    def match_and_rewrite(self, op: BlockwiseProduct, rewriter: Rewriter, /) -> None:
        if all(map(rewriter.storage.is_constant, _weights(op))):
            return
        rewriter.replace(op, (), [product_of_dequantized(op, rewriter.emit)])


class WidenTables(Pattern):
    """Store the entries of tables as bytes where a target has no instruction that looks them up."""

    @rooted
    def match_and_rewrite(self, op: BlockwiseProduct, rewriter: Rewriter, /) -> None:
        codes = rewriter.storage.deferred(op.codes)
        if op.table is None or codes is None or rewriter.function.target.byte_tables:
            return
        op.operands[list(op.operands).index(op.codes)] = rewriter.emit.stored(
            TableEntries(codes, ints(op.table)), op.codes.name_hint or "weights"
        )
        op.properties["bits"] = to_attribute(BYTE_BITS)
        del op.properties["table"]
        rewriter.notify_op_modified(op)


class StoreSplats(Pattern):
    """Turn splat weights and splat parameters of blocks into constants: kernels read packed ones."""

    @rooted
    def match_and_rewrite(self, op: BlockwiseProduct, rewriter: Rewriter, /) -> None:
        for position, value in enumerate(op.operands):
            if isinstance(value.owner, SplatOp) and value in _weights(op):
                name = value.name_hint or "weights"
                op.operands[position] = rewriter.emit.stored(splat_array(value.owner), name)
                rewriter.notify_op_modified(op)


def _weights(op: BlockwiseProduct) -> Sequence[SSAValue]:
    """The operands that make up the weights."""
    return [op.codes, *op.parameters().values()]


@dataclass(frozen=True)
class LowerQuantizationPass(PatternPass):
    """
    Lower quantized products to products of stored integers, which kernels execute, plus corrections that are constant
    if the right operand is (paper §4.5).

    Products with non-constant blocks become float products, and products of few rows with dequantized constants
    blockwise products.
    """

    name = "lower-quantization"
    WALKS = (
        Walk((ProductOfIntegers(), ProductOfRunTimeBlocks(), MultiplyDequantized(), StoreSplats(), WidenTables())),
    )
