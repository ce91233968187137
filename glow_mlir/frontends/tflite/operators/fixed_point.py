"""
Functions of integers in fixed point, with the bits of gemmlowp, for tables.

Numbers are arrays of i64 that hold integers of 32 bits. "Qn" has n bits before the point besides its sign: 2^(31 - n)
is 1.
"""

from __future__ import annotations

import numpy as np

from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.rescaling import BITS, multiplied, quantized_multipliers

LARGEST = (1 << 31) - 1
"""The largest integer of 32 bits."""


def saturated(values: np.ndarray, bits: int = 32) -> np.ndarray:
    """Integers limited to a number of bits."""
    return np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def product(left: np.ndarray, right: np.ndarray | int, bits: int = 32) -> np.ndarray:
    """The high half of twice the product of integers, with halves rounded up."""
    return saturated((left * right + (1 << (bits - 2))) >> (bits - 1), bits)


def halved(values: np.ndarray, bits: np.ndarray | int) -> np.ndarray:
    """Integers divided by 2^bits, with halves rounded away from zero."""
    mask = (np.int64(1) << bits) - 1
    return (values >> bits) + ((values & mask) > (mask >> 1) + (values < 0))


def reciprocal(fraction: np.ndarray) -> np.ndarray:
    """1 / (1 + x) for x from 0 to 1, both Q0, by three of Newton's steps from 48/17 - 32/17 · x."""
    denominator = (fraction + LARGEST + 1) // 2
    found = 1515870810 + product(denominator, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - product(denominator, found)
        found = found + saturated(product(found, rest) << 2)
    return saturated(found << 1)


FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""e to the powers -1/4, -1/2, -1, -2, -4, -8 and -16, of Q0."""


def exponential(values: np.ndarray, integer_bits: int) -> np.ndarray:
    """e^x, of Q0, for x from -2^`integer_bits` to 0 with so many bits before the point."""
    bits = 31 - integer_bits
    quarter = 1 << (bits - 2)
    rest = (values & (quarter - 1)) - quarter
    x = (rest << integer_bits) + (1 << 28)
    square = product(x, x)
    cube, fourth = product(square, x), halved(product(square, square), 2)
    series = halved(product(fourth + cube, 715827883) + square, 1)
    found = 1895147668 + product(np.full_like(x, 1895147668), x + series)
    for position, factor in enumerate(FACTORS):
        is_set = ((rest - values) >> (bits - 2 + position)) & 1
        found = np.where(is_set, product(found, factor), found)
    return np.where(values == 0, LARGEST, found)


def reciprocals(divisors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reciprocals of divisors above 0 as multipliers and shifts: 1 / divisor = multiplier / 2^31 / 2^shift."""
    lengths = np.floor(np.log2(divisors)).astype(np.int64)
    fractions = (divisors.astype(np.int64) << (31 - lengths)) - (1 << 31)
    return reciprocal(fractions).astype(np.int32), lengths.astype(np.int32)


def root_of_reciprocal(value: int) -> tuple[int, int]:
    """1 / √x of an integer above 0 as a multiplier and a shift to the left, by five of Newton's steps from 1."""
    if value == 1:
        return LARGEST, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    shift, scaled = 11 - pairs, np.array(value << (2 * pairs), np.int64) >> 1
    half, found = halved(scaled, 1), np.array(1 << 28, np.int64)
    for _ in range(5):
        cube = saturated(product(product(found, found), found) << 6)
        found = saturated((product(found, (1 << 28) + (1 << 27)) - product(half, cube)) << 3)
    multiplier = int(product(found, 1518500250))
    return (multiplier << -shift, 0) if shift < 0 else (multiplier, -shift)


ROOT_BITS = 20
"""The fraction bits of a root before it is rescaled."""


def reciprocal_roots(node: TfliteNode) -> np.ndarray:
    """The table of 1 / √x of quantized values of int8; 0 has the largest value, and negative ones have no meaning."""
    own, out = (node.quantization(item) for item in (node.tensor(0), node.output()))
    factor = 1.0 / float(np.sqrt(own.scales[0]) * out.scales[0])
    multipliers, shifts = quantized_multipliers(np.array([factor]))
    found = np.full(256, 127, np.int64)
    for index, entry in enumerate(np.arange(256, dtype=np.uint8).view(np.int8).tolist()):
        value = entry - int(own.zero_points[0])
        if value > 0:
            multiplier, left = root_of_reciprocal(value)
            root = multiplied(np.array(1), multiplier, BITS - left - ROOT_BITS)
            found[index] = multiplied(root, int(multipliers[0]), int(shifts[0]) + ROOT_BITS) + out.zero_points[0]
    return found.clip(-128, 127).astype(np.int8)


def _short_multiplier(factor: np.float32) -> tuple[int, int]:
    """A factor as a multiplier of 16 bits, and a shift to the left."""
    multipliers, shifts = quantized_multipliers(np.array([factor], np.float64))
    return min((int(multipliers[0]) + (1 << 15)) >> 16, (1 << 15) - 1), BITS - int(shifts[0])


def hard_swish_table(node: TfliteNode) -> np.ndarray:
    """The table of x · ReLU6(x + 3) / 6 of quantized values of 8 bits, in integers of 16 bits as the reference."""
    own, out = (node.quantization(item) for item in (node.tensor(0), node.output()))
    dtype = np.dtype(node.tensor(0).dtype)
    scale = np.float32(1 / 128) * own.scales[0]
    to_output, output_shift = _short_multiplier(scale / out.scales[0])
    to_gate, gate_shift = _short_multiplier(scale / np.float32(3 / 32768))
    if output_shift > 0:
        raise node.unsupported("of a scale above 128 times that of the result is not supported")
    fine = (np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64) - own.zero_points[0]) << 7
    gate = saturated(fine << (gate_shift - 1), 16) if gate_shift > 0 else fine
    gate = product(gate, to_gate, 16)
    gate = saturated(gate << 1, 16) if gate_shift > 0 else halved(gate, -gate_shift)
    gate = (gate + (1 << 15)) >> 1
    gated = gate * product(fine, to_output, 16)
    found = halved(np.sign(gated) * (np.abs(gated) >> 15), -output_shift) + out.zero_points[0]
    limits = np.iinfo(dtype)
    return found.clip(limits.min, limits.max).astype(dtype)
