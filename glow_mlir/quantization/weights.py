"""Codes of constants: weights with a scale for each channel, and what is added to their products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glow_mlir.quantization.schemas import NO_SCALE, POWER_OF_TWO


class WeightCodes(NamedTuple):
    """Signed integers that stand for weights, and their scales, which broadcast with them; their zero point is 0."""

    codes: np.ndarray
    scales: np.ndarray

    def numbers(self) -> np.ndarray:
        """The numbers that the codes stand for, as f32."""
        return (self.codes * self.scales.astype(np.float64)).astype(np.float32)


def weight_codes(weights: np.ndarray, line: tuple[int, ...], schema: str, bits: int) -> WeightCodes:
    """
    The codes of finite weights, with a scale for each index of the axes that are no 1 in `line`; `()` is one for all.

    Codes go from -(2^(bits - 1) - 1) to its opposite under every schema: a zero point would cost a sum over the other
    operand for each product, and with the code left out the sum of two products fits where kernels need that. Codes of
    fewer than 8 bits are stored as bytes.
    """
    axes = tuple(axis for axis, size in enumerate(line) if size == 1) if line else None
    magnitudes = np.abs(weights).max(axis=axes, keepdims=bool(line), initial=0.0)
    most = (1 << bits - 1) - 1
    scales = symmetric_scales(magnitudes, schema, most)
    codes = np.clip(np.rint(weights / scales.astype(np.float64)), -most, most)
    return WeightCodes(codes.astype(f"int{max(bits, 8)}"), scales)


def block_codes(weights: np.ndarray, bits: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Codes, of u8, of finite weights [N, K], and the scales [N, blocks] of blocks of them along the rows, as f32.

    The weight of the largest magnitude has the code 0, whose distance from the zero point 2^(bits - 1) is the largest:
    the sign of the scale is the opposite of its sign (llama.cpp's Q4_0).
    """
    rows, depth = weights.shape
    half, blocks = 1 << bits - 1, -(-depth // block)
    whole = np.zeros((rows, blocks * block), np.float64)
    whole[:, :depth] = weights
    parts = whole.reshape(rows, blocks, block)
    extremes = np.take_along_axis(parts, np.abs(parts).argmax(axis=-1, keepdims=True), axis=-1)
    scales = (extremes / -half).astype(np.float32)
    units = np.where(np.abs(scales) > np.finfo(np.float32).tiny, scales, np.float32(NO_SCALE))
    codes = np.clip(np.rint(parts / units.astype(np.float64)) + half, 0, 2 * half - 1).astype(np.uint8)
    return codes.reshape(whole.shape)[:, :depth], units[..., 0]


def symmetric_scales(magnitudes: np.ndarray, schema: str, most: int) -> np.ndarray:
    """The scales, as f32, by which these magnitudes have the code `most`; powers of two where the schema says so."""
    scales = np.asarray(magnitudes, np.float64) / most
    if schema == POWER_OF_TWO:
        scales = np.exp2(np.ceil(np.log2(np.where(scales > 0, scales, 1.0)))) * (scales > 0)
    scales = scales.astype(np.float32)
    return np.where(scales > np.finfo(np.float32).tiny, scales, np.float32(NO_SCALE))


def bias_codes(bias: np.ndarray, scales: np.ndarray, schema: str, bits: int) -> WeightCodes:
    """
    The codes of a finite bias in the scale of the products that it is added to, or, where it does not fit into integers
    of so many bits, in one in which it does (Glow's rule).
    """
    most = (1 << bits - 1) - 1
    largest = np.abs(bias).max(initial=0.0)
    least = symmetric_scales(largest, schema, most) if largest > 0 else np.float32(0)
    scales = np.maximum(scales.astype(np.float32), least)
    codes = np.clip(np.rint(bias / scales.astype(np.float64)), -most, most)
    return WeightCodes(codes.astype(f"int{bits}"), scales)
