"""Quantization schemas: scale and zero point from the range of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, f32

from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds
from glow_mlir.support.dataclass import dataclass

POWER_OF_TWO = "symmetric-with-power2-scale"
"""The schema with power-of-two scales, for weights too."""

NO_SCALE = float(np.float32(0.1))
"""The scale if all numbers are 0, or so close to it that 1 / scale is infinite; Glow's."""


@dataclass(frozen=True)
class Uniform:
    """Quantized values from `least` to `most` in integers of `bits` bits, with real value (q - zero point) · scale."""

    bits: int
    is_signed: bool
    least: int
    most: int
    scale: float
    zero_point: int = 0

    def quantize(self, numbers: np.ndarray) -> np.ndarray:
        """Quantize numbers like `glow_high.quantize`; returns wide integers."""
        whole = np.rint(numbers / self.scale) + self.zero_point
        return np.clip(whole, self.least, self.most).astype(np.int64)

    def dequantize(self, quantized: np.ndarray) -> np.ndarray:
        """Dequantize."""
        return (quantized - self.zero_point) * self.scale

    def type(self) -> UniformQuantizedType:
        """The element type of these quantized values of f32."""
        storage = _integer(self.bits, self.is_signed)
        parameters = [(self.scale, self.zero_point)]
        return UniformQuantizedType.of(storage, f32, parameters, bounds=(self.least, self.most))


def uniform_of(schema: str, bits: int, low: float, high: float) -> Uniform:
    """
    The quantization parameters for numbers from `low` to `high` by one of `options.SCHEMAS`.

    The range is widened to contain 0, which is exact: padding and ReLU depend on it. These are Glow's rules
    (`quantization::chooseQuantizationParams`), except that symmetric scales map the largest magnitude to the largest
    quantized value, like gemmlowp and onnxruntime, and not half a step beyond it.
    """
    return _SCHEMAS[schema](bits, min(low, 0.0), max(high, 0.0))


def _integer(bits: int, is_signed: bool) -> IntegerType[int, Signedness]:
    signedness = Signedness.SIGNLESS if is_signed else Signedness.UNSIGNED
    return IntegerType(bits, signedness)


def usable(scale: float) -> float:
    """A scale as f32, or `NO_SCALE` if it or its reciprocal is not a usable number."""
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        rounded = np.float32(scale)
        return float(rounded) if np.isfinite(np.float32(1) / rounded) else NO_SCALE


def _asymmetric(bits: int, low: float, high: float) -> Uniform:
    """Map the whole range of the numbers to that of the integers; bytes are unsigned, as kernels need them."""
    is_signed = bits > 8
    least, most = integer_bounds(_integer(bits, is_signed))
    scale = usable((high - low) / (most - least))
    zero_point = min(max(round(least - low / scale), least), most)
    return Uniform(bits, is_signed, least, most, scale, zero_point)


def _symmetric(bits: int, low: float, high: float) -> Uniform:
    """
    Zero point 0. If no number is negative, the range has no negative values, which makes a ReLU in front redundant.
    """
    least, most = integer_bounds(_integer(bits, True))
    return Uniform(bits, True, least if low < 0 else 0, most, usable(max(-low, high) / most))


def _symmetric_or_unsigned(bits: int, low: float, high: float) -> Uniform:
    """Unsigned integers if no number is negative."""
    if low < 0:
        return _symmetric(bits, low, high)
    least, most = integer_bounds(_integer(bits, False))
    return Uniform(bits, False, least, most, usable(high / most))


def _symmetric_by_shift(bits: int, low: float, high: float) -> Uniform:
    """Round the scale up to a power of two, so that integer requantization is a shift."""
    found = _symmetric(bits, low, high)
    scale = usable(math.exp2(math.ceil(math.log2(found.scale))))
    return Uniform(bits, True, found.least, found.most, scale)


_SCHEMAS: dict[str, Callable[[int, float, float], Uniform]] = {
    "asymmetric": _asymmetric,
    "symmetric": _symmetric,
    "symmetric-with-uint8": _symmetric_or_unsigned,
    POWER_OF_TWO: _symmetric_by_shift,
}
"""Schema → function of a number of bits and a range that contains 0."""
