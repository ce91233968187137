"""Semantics of operators on block-quantized weights: dequantized in f32, accumulated in f64, rounded once."""

from __future__ import annotations

import numpy as np

from glow_mlir.constants.sub_byte_values import unpack_sub_bytes
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.blockwise import Blockwise, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.dialects.properties import integer
from glow_mlir.ir.registry import semantics


@semantics(BlockwiseDequantizeOp)
def blockwise_dequantize(
    op: BlockwiseDequantizeOp, quantized: np.ndarray, scales: np.ndarray, zero_points: np.ndarray | None
) -> np.ndarray:
    """Dequantize: (quantized value - zero point) · scale."""
    return numbers(op, quantized, scales, zero_points)


@semantics(BlockwiseMatMulOp)
def blockwise_matmul(
    op: BlockwiseMatMulOp,
    left: np.ndarray,
    quantized: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    bias: np.ndarray | None,
) -> np.ndarray:
    """Multiply by the dequantized weights, and add the bias."""
    rows = rounded(left, integer(op.block)) if integer(op.left_bits) else left.astype(np.float64)
    product = rows @ numbers(op, quantized, scales, zero_points).astype(np.float64).T
    return np.asarray(product if bias is None else product + bias.astype(np.float64), np.float32)


def numbers(op: Blockwise, quantized: np.ndarray, scales: np.ndarray, zero_points: np.ndarray | None) -> np.ndarray:
    """Dequantize quantized blocks to f32."""
    bits, block = integer(op.bits), integer(op.block)
    unpacked = unpack_sub_bytes(quantized, bits)
    found = (unpacked if op.element is None else unpacked.view(numpy_dtype(op.element))).astype(np.float32)
    size = found.shape[-1]

    def spread(parameters: np.ndarray) -> np.ndarray:
        return np.repeat(parameters.astype(np.float32), block, axis=-1)[..., :size]

    with np.errstate(all="ignore"):
        if op.element is not None:
            return np.asarray(found * spread(scales))
        middle = np.float32(1 << bits - 1) if zero_points is None else spread(zero_points)
        return np.asarray((found - middle) * spread(scales))


def rounded(rows: np.ndarray, block: int) -> np.ndarray:
    """Round blocks of f32 rows to quantized values from -127 to 127, dequantized in f64."""
    depth = rows.shape[-1]
    count = -(-depth // block)
    whole = np.zeros((*rows.shape[:-1], count * block), np.float32)
    whole[..., :depth] = rows
    blocks = whole.reshape(*rows.shape[:-1], count, block)
    with np.errstate(all="ignore"):
        scale = np.abs(blocks).max(axis=-1, keepdims=True, initial=0.0) / np.float32(127)
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0))
        quantized = np.rint(blocks * inverse)
        return (quantized.astype(np.float64) * scale).reshape(whole.shape)[..., :depth]
