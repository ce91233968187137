"""Matrix products: with constants as convolutions of one pixel, as NPUs have them, and else as MATMUL."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import rank_of, shape_of
from tosa_backend.builder import TosaBuilder
from tosa_backend.emitters.convolution import accumulator, multiplies, zero_point
from tosa_backend.rules import emits, is_constant


def _can_multiply(op: MatMulOp) -> bool:
    return multiplies(op.left, op.right)


@emits(MatMulOp, when=_can_multiply)
def matmul(op: MatMulOp, b: TosaBuilder) -> SSAValue:
    """Products of matrices; those of a batch that is one matrix on the right are one product."""
    left = turned(b, b.value(op.left), flag(op.transpose_left))
    if is_constant(op.right) and rank_of(op.right) == 2:
        found = _by_pixels(op, left, b)
    else:
        right = turned(b, b.value(op.right), flag(op.transpose_right))
        found = _batched(op, left, right, b)
        taken = b.biases.get(op)
        bias = b.constant(np.ascontiguousarray(taken)) if taken is not None else op.bias and b.value(op.bias)
        if bias is not None:
            found = b.add(found, b.ranked(bias, 3))
    return b.reshape(found, shape_of(op.result))


def turned(b: TosaBuilder, value: SSAValue, transposes: bool) -> SSAValue:
    """Matrices, with the last two axes swapped where that is wanted."""
    axes = list(range(rank_of(value)))
    return b.transpose(value, [*axes[:-2], axes[-1], axes[-2]]) if transposes else value


def _by_pixels(op: MatMulOp, left: SSAValue, b: TosaBuilder) -> SSAValue:
    """Rows as pixels [1, rows, 1, depth], columns as filters [columns, 1, 1, depth]."""
    weights = turned(b, b.value(op.right), not flag(op.transpose_right))
    columns, depth = shape_of(weights)
    rows = math.prod(shape_of(left)[:-1])
    pixels, filters = b.reshape(left, (1, rows, 1, depth)), b.reshape(weights, (columns, 1, 1, depth))
    return pixel_product(op, pixels, filters, b)


def pixel_product(op: MatMulOp, pixels: SSAValue, filters: SSAValue, b: TosaBuilder) -> SSAValue:
    """The convolution of pixels with filters of one pixel."""
    element, taken = accumulator(op.left), b.biases.get(op)
    if op.bias is not None:
        bias = b.value(op.bias)
    else:
        bias = b.splat(0, element) if taken is None else b.constant(np.ascontiguousarray(taken))
    zeros = zero_point(b, op.left), zero_point(b, op.right)
    shape = (*shape_of(pixels)[:-1], shape_of(filters)[0])
    fields = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1), "acc_type": element}
    return b("conv2d", pixels, filters, bias, *zeros, shape=shape, element=element, **fields)


def _batched(op: MatMulOp, left: SSAValue, right: SSAValue, b: TosaBuilder) -> SSAValue:
    """MATMUL over one axis of batches, along which both operands are repeated where they broadcast."""
    batch = shape_of(op.result)[:-2]
    matrices = [_repeated(b, value, batch) for value in (left, right)]
    zeros = zero_point(b, op.left), zero_point(b, op.right)
    (count, rows, _), (*_, columns) = shape_of(matrices[0]), shape_of(matrices[1])
    return b("matmul", *matrices, *zeros, shape=(count, rows, columns), element=accumulator(op.left))


def _repeated(b: TosaBuilder, value: SSAValue, batch: Sequence[int]) -> SSAValue:
    """Matrices [batch, rows, columns], for each of a batch."""
    value = b.ranked(value, len(batch) + 2)
    shape = shape_of(value)
    whole = b.tile(value, [*(size // given for size, given in zip(batch, shape, strict=False)), 1, 1])
    return b.reshape(whole, (math.prod(batch), *shape[-2:]))
