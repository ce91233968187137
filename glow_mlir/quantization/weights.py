"""Quantization of constants: weights with a scale per channel, and biases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glow_mlir.quantization.schemas import NO_SCALE, POWER_OF_TWO


class QuantizedWeights(NamedTuple):
    """Signed quantized weights with zero point 0, and their scales, which broadcast to them."""

    quantized: np.ndarray
    scales: np.ndarray

    def numbers(self) -> np.ndarray:
        """Dequantize to f32."""
        return (self.quantized * self.scales.astype(np.float64)).astype(np.float32)


def quantize_weights(weights: np.ndarray, line: tuple[int, ...], schema: str, bits: int) -> QuantizedWeights:
    """
    Quantize finite weights with a scale per index of the non-unit axes in `line`; `()` for a single scale.

    Values range from -(2^(bits - 1) - 1) to its opposite under every schema: a zero point would cost a sum over the
    other operand for each product, and without the lowest value, the sum of two products fits the kernels' integers.
    Values of fewer than 8 bits are stored as bytes.
    """
    axes = tuple(axis for axis, size in enumerate(line) if size == 1) if line else None
    magnitudes = np.abs(weights).max(axis=axes, keepdims=bool(line), initial=0.0)
    most = (1 << bits - 1) - 1
    scales = symmetric_scales(magnitudes, schema, most)
    quantized = np.clip(np.rint(weights / scales.astype(np.float64)), -most, most)
    return QuantizedWeights(quantized.astype(f"int{max(bits, 8)}"), scales)


def quantize_blocks(weights: np.ndarray, bits: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Quantize finite weights [N, K] to u8 in blocks along the rows; returns them with the f32 scales [N, blocks].

    The weight of the largest magnitude becomes 0, the value farthest from the zero point 2^(bits - 1): the sign of the
    scale is the opposite of its sign (llama.cpp's Q4_0).
    """
    rows, depth = weights.shape
    half, blocks = 1 << bits - 1, -(-depth // block)
    whole = np.zeros((rows, blocks * block), np.float64)
    whole[:, :depth] = weights
    parts = whole.reshape(rows, blocks, block)
    extremes = np.take_along_axis(parts, np.abs(parts).argmax(axis=-1, keepdims=True), axis=-1)
    scales = (extremes / -half).astype(np.float32)
    units = np.where(np.abs(scales) > np.finfo(np.float32).tiny, scales, np.float32(NO_SCALE))
    quantized = np.clip(np.rint(parts / units.astype(np.float64)) + half, 0, 2 * half - 1).astype(np.uint8)
    return quantized.reshape(whole.shape)[:, :depth], units[..., 0]


def symmetric_scales(magnitudes: np.ndarray, schema: str, most: int) -> np.ndarray:
    """The f32 scales that map these magnitudes to `most`; powers of two if the schema requires it."""
    scales = np.asarray(magnitudes, np.float64) / most
    if schema == POWER_OF_TWO:
        scales = np.exp2(np.ceil(np.log2(np.where(scales > 0, scales, 1.0)))) * (scales > 0)
    scales = scales.astype(np.float32)
    return np.where(scales > np.finfo(np.float32).tiny, scales, np.float32(NO_SCALE))


def quantize_bias(bias: np.ndarray, scales: np.ndarray, schema: str, bits: int) -> QuantizedWeights:
    """
    Quantize a finite bias with the scale of its accumulators, or with a larger one if it does not fit `bits` bits
    (Glow's rule).
    """
    most = (1 << bits - 1) - 1
    largest = np.abs(bias).max(initial=0.0)
    least = symmetric_scales(largest, schema, most) if largest > 0 else np.float32(0)
    scales = np.maximum(scales.astype(np.float32), least)
    quantized = np.clip(np.rint(bias / scales.astype(np.float64)), -most, most)
    return QuantizedWeights(quantized.astype(f"int{bits}"), scales)
