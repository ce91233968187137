"""Semantics of operators on block-quantized weights: dequantized in f32, accumulated in f64, rounded once."""

from __future__ import annotations

from typing import overload

import numpy as np

from glow_mlir.constants.sub_byte_values import unpack_sub_bytes
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.blockwise import (
    LARGEST,
    LOW_BITS,
    Blockwise,
    BlockwiseDequantizeOp,
    BlockwiseMatMulIntegerOp,
    BlockwiseMatMulOp,
)
from glow_mlir.dialects.properties import integer, ints
from glow_mlir.ir.registry import semantics


@semantics(BlockwiseDequantizeOp)
def blockwise_dequantize(
    op: BlockwiseDequantizeOp,
    quantized: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    minima: np.ndarray | None,
    scale_factors: np.ndarray | None,
    minimum_factors: np.ndarray | None,
) -> np.ndarray:
    """Dequantize: (quantized value - zero point) · scale, or quantized value · scale + minimum."""
    return numbers(op, quantized, _whole(scales, scale_factors), zero_points, _whole(minima, minimum_factors))


@semantics(BlockwiseMatMulOp)
def blockwise_matmul(
    op: BlockwiseMatMulOp,
    left: np.ndarray,
    quantized: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    minima: np.ndarray | None,
    bias: np.ndarray | None,
    scale_factors: np.ndarray | None,
    minimum_factors: np.ndarray | None,
) -> np.ndarray:
    """Multiply by the dequantized weights, and add the bias."""
    bits = integer(op.left_bits)
    rows = rounded(left, integer(op.block), LARGEST[bits]) if bits else left.astype(np.float64)
    scales, minima = _whole(scales, scale_factors), _whole(minima, minimum_factors)
    product = rows @ numbers(op, quantized, scales, zero_points, minima).astype(np.float64).T
    return np.asarray(product if bias is None else product + bias.astype(np.float64), np.float32)


@semantics(BlockwiseMatMulIntegerOp)
def blockwise_matmul_integer(
    op: BlockwiseMatMulIntegerOp,
    left: np.ndarray,
    low: np.ndarray | None,
    left_scales: np.ndarray,
    left_sums: np.ndarray,
    quantized: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    minima: np.ndarray | None,
    bias: np.ndarray | None,
    scale_factors: np.ndarray | None,
    minimum_factors: np.ndarray | None,
) -> np.ndarray:
    """Sum the products of each block as i32, which wraps, less zero points times sums; scale, add minima times sums."""
    bits, block = integer(op.bits), integer(op.block)
    scales, minima = _whole(scales, scale_factors), _whole(minima, minimum_factors)
    values = left.astype(np.int64)
    if low is not None:
        values = values * (1 << LOW_BITS) + low
    codes = _looked_up(op, unpack_sub_bytes(quantized, bits)).astype(np.int64)
    totals = np.einsum("...bk,nbk->...bn", _blocks(values, block), _blocks(codes, block))
    own = left_sums.astype(np.int64)[..., np.newaxis]
    if minima is not None or op.table is not None:
        accumulators = totals.astype(np.int32).astype(np.float64)
    elif zero_points is None:
        accumulators = (totals - (own << bits - 1)).astype(np.int32).astype(np.float64)
    else:
        accumulators = totals.astype(np.int32) - own * zero_points.astype(np.float64).T
    lefts = left_scales.astype(np.float64)[..., np.newaxis]
    with np.errstate(all="ignore"):
        blocks = accumulators * (lefts * scales.astype(np.float64).T)
        if minima is not None:
            blocks = blocks + own * lefts * minima.astype(np.float64).T
        product = blocks.sum(axis=-2)
    return np.asarray(product if bias is None else product + bias.astype(np.float64), np.float32)


def _looked_up(op: Blockwise, codes: np.ndarray) -> np.ndarray:
    """The entries of a table for codes; the codes themselves where there is none."""
    return codes if op.table is None else np.array(ints(op.table), np.int8)[codes]


@overload
def _whole(parameters: np.ndarray, factors: np.ndarray | None) -> np.ndarray: ...
@overload
def _whole(parameters: np.ndarray | None, factors: np.ndarray | None) -> np.ndarray | None: ...
def _whole(parameters: np.ndarray | None, factors: np.ndarray | None) -> np.ndarray | None:
    """The scales or minima of blocks: bytes times their factors, if there are any."""
    if parameters is None or factors is None:
        return parameters
    spread = np.repeat(factors.astype(np.float32), parameters.shape[-1] // factors.shape[-1], axis=-1)
    with np.errstate(all="ignore"):
        return parameters.astype(np.float32) * spread


def _blocks(rows: np.ndarray, block: int) -> np.ndarray:
    """Split the last axis into blocks, the last of which is filled with zeros."""
    count = -(-rows.shape[-1] // block)
    missing = [(0, 0)] * (rows.ndim - 1) + [(0, count * block - rows.shape[-1])]
    return np.pad(rows, missing).reshape(*rows.shape[:-1], count, block)


def numbers(
    op: Blockwise,
    quantized: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    minima: np.ndarray | None,
) -> np.ndarray:
    """Dequantize quantized blocks to f32."""
    bits, block = integer(op.bits), integer(op.block)
    unpacked = _looked_up(op, unpack_sub_bytes(quantized, bits))
    found = (unpacked if op.element is None else unpacked.view(numpy_dtype(op.element))).astype(np.float32)
    size = found.shape[-1]

    def spread(parameters: np.ndarray) -> np.ndarray:
        return np.repeat(parameters.astype(np.float32), block, axis=-1)[..., :size]

    with np.errstate(all="ignore"):
        if op.element is not None or op.table is not None:
            return np.asarray(found * spread(scales))
        if minima is not None:
            return np.asarray(found * spread(scales) + spread(minima))
        middle = np.float32(1 << bits - 1) if zero_points is None else spread(zero_points)
        return np.asarray((found - middle) * spread(scales))


def rounded(rows: np.ndarray, block: int, largest: int) -> np.ndarray:
    """Round blocks of f32 rows to integers from -`largest` to `largest`, dequantized in f64."""
    depth = rows.shape[-1]
    count = -(-depth // block)
    whole = np.zeros((*rows.shape[:-1], count * block), np.float32)
    whole[..., :depth] = rows
    blocks = whole.reshape(*rows.shape[:-1], count, block)
    with np.errstate(all="ignore"):
        scale = np.abs(blocks).max(axis=-1, keepdims=True, initial=0.0) / np.float32(largest)
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0))
        quantized = np.rint(blocks * inverse)
        return (quantized.astype(np.float64) * scale).reshape(whole.shape)[..., :depth]
