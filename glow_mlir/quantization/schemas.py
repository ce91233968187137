"""Scale and zero point of codes, from the range of the numbers that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, f32

from glow_mlir.dialects.quant import UniformQuantizedType, integer_bounds
from glow_mlir.support.dataclass import dataclass

POWER_OF_TWO = "symmetric-with-power2-scale"
"""The schema whose scales are powers of two, those of weights included."""

NO_SCALE = float(np.float32(0.1))
"""The scale where all numbers are 0, or so close to it that 1 / scale is infinite; Glow's."""


@dataclass(frozen=True)
class Uniform:
    """Codes from `least` to `most`, in integers of `bits`, each of which stands for (code - zero point) · scale."""

    bits: int
    is_signed: bool
    least: int
    most: int
    scale: float
    zero_point: int = 0

    def codes(self, numbers: np.ndarray) -> np.ndarray:
        """The codes of numbers, as `glow_high.quantize` gives them; as wide integers."""
        whole = np.rint(numbers / self.scale) + self.zero_point
        return np.clip(whole, self.least, self.most).astype(np.int64)

    def numbers(self, codes: np.ndarray) -> np.ndarray:
        """The numbers that codes stand for."""
        return (codes - self.zero_point) * self.scale

    def type(self) -> UniformQuantizedType:
        """The element type of such codes of f32."""
        storage = _integer(self.bits, self.is_signed)
        parameters = [(self.scale, self.zero_point)]
        return UniformQuantizedType.of(storage, f32, parameters, bounds=(self.least, self.most))


def uniform_of(schema: str, bits: int, low: float, high: float) -> Uniform:
    """
    The codes of numbers from `low` to `high` by one of `options.SCHEMAS`.

    The range is widened to contain 0, whose code is exact: padding and ReLU depend on it. These are Glow's rules
    (`quantization::chooseQuantizationParams`), but that symmetric scales map the largest magnitude to the largest code,
    as gemmlowp's and onnxruntime's do, and not to half a code beyond it.
    """
    return _SCHEMAS[schema](bits, min(low, 0.0), max(high, 0.0))


def _integer(bits: int, is_signed: bool) -> IntegerType[int, Signedness]:
    signedness = Signedness.SIGNLESS if is_signed else Signedness.UNSIGNED
    return IntegerType(bits, signedness)


def usable(scale: float) -> float:
    """A scale as f32, or `NO_SCALE` where that, or its reciprocal, is no number to compute with."""
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        rounded = np.float32(scale)
        return float(rounded) if np.isfinite(np.float32(1) / rounded) else NO_SCALE


def _asymmetric(bits: int, low: float, high: float) -> Uniform:
    """The whole range of the integers for the whole range of the numbers; bytes have no sign, as kernels want them."""
    is_signed = bits > 8
    least, most = integer_bounds(_integer(bits, is_signed))
    scale = usable((high - low) / (most - least))
    zero_point = min(max(round(least - low / scale), least), most)
    return Uniform(bits, is_signed, least, most, scale, zero_point)


def _symmetric(bits: int, low: float, high: float) -> Uniform:
    """Zero point 0. Where no number is negative, no code is: a ReLU in front of it has nothing left to do."""
    least, most = integer_bounds(_integer(bits, True))
    return Uniform(bits, True, least if low < 0 else 0, most, usable(max(-low, high) / most))


def _symmetric_or_unsigned(bits: int, low: float, high: float) -> Uniform:
    """Integers without a sign where no number is negative."""
    if low < 0:
        return _symmetric(bits, low, high)
    least, most = integer_bounds(_integer(bits, False))
    return Uniform(bits, False, least, most, usable(high / most))


def _symmetric_by_shift(bits: int, low: float, high: float) -> Uniform:
    """The next larger power of two as scale, so that integer requantization is a shift."""
    found = _symmetric(bits, low, high)
    scale = usable(math.exp2(math.ceil(math.log2(found.scale))))
    return Uniform(bits, True, found.least, found.most, scale)


_SCHEMAS: dict[str, Callable[[int, float, float], Uniform]] = {
    "asymmetric": _asymmetric,
    "symmetric": _symmetric,
    "symmetric-with-uint8": _symmetric_or_unsigned,
    POWER_OF_TWO: _symmetric_by_shift,
}
"""Schema → codes for so many bits and a range that contains 0."""
