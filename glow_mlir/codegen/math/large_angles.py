"""
Angles reduced exactly, however large they are (Payne and Hanek 1983).

An angle is `m 2^e` with an integer m of 53 bits. Of its quotient by pi/2 only the last two bits before the point and
the bits behind it matter, and they come from a window of 192 bits of 2/pi: those before the window give multiples of
four, those behind it less than 2^-129. The nearest that an f64 comes to a multiple of pi/2 is about 2^-61, so that the
remainder still has more bits than a float, and is rounded once.

For an f32 on machines without f64, m has 24 bits, the window 96, and the remainder is a pair of f32: what the window
leaves out is less than 2^-63, and the nearest that an f32 comes to a multiple of pi/2 about 2^-30.

This is scalar code in a function of the module that is rarely called: for all lanes of vectors with a large lane.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, i1, i8, i32, i64, index_type, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.angle_polynomials import HALF_PI_OF_F32
from glow_mlir.codegen.math.float_format import FORMATS, Function
from glow_mlir.codegen.math.pairs import Pair, constant_pair, multiply, negated, ordered_sum, select
from glow_mlir.codegen.math.wide_integers import to_float, wide_product
from glow_mlir.support.dataclass import dataclass

LARGE = 2.0**22
"""The magnitude from which on an f64 is reduced this way."""

LARGE_OF_PAIRS = 2.0**10
"""
The magnitude from which on an f32 is, on machines without f64; from 2^-30 of it on, the table has bits for an angle.
"""

TABLE_BITS = 1168
"""The bits of 2/pi after the point in the table: those before the window of the largest f64, and 192 more."""

LEADING_BITS = 32
"""The zeros before the point: how far the window of `LARGE` reaches beyond it."""

HALF_PI_IN_64_BITS = 0xC90FDAA22168C235
"""pi/2 times 2^63."""

_FORM = FORMATS[64]

Rest = TypeVar("Rest")
"""The remainder of an angle: an f64, or a pair of f32."""


def two_over_pi(bits: int) -> int:
    """Return 2/pi times two to the power `bits`, rounded down (pi by Machin's formula, in integers)."""
    guard = bits + 64
    pi = 4 * (4 * _arc_cotangent(5, guard) - _arc_cotangent(239, guard))
    return (2 << guard + bits) // pi


def _arc_cotangent(n: int, bits: int) -> int:
    """Return the angle whose tangent is 1/n, times two to the power `bits`; off by less than `bits`."""
    total, power, k = 0, (1 << bits) // n, 0
    while power:
        total += (-power if k % 2 else power) // (2 * k + 1)
        power //= n * n
        k += 1
    return total


@functools.cache
def _table() -> np.ndarray:
    """The bits of 2/pi as one integer, the lowest byte first."""
    data = two_over_pi(TABLE_BITS).to_bytes((TABLE_BITS + LEADING_BITS) // 8, "little")
    return np.frombuffer(data, np.uint8)


@dataclass(frozen=True)
class Reduction(Generic[Rest]):
    """
    How large angles of a type are reduced.

    For an angle that is finite and large, `reduce` returns the remainder within +-pi/4, and the multiple of pi/2, whose
    lowest two bits are right. It takes the builder, the address of the table, and the angle.
    """

    element: Attribute
    large: float
    reduce: Callable[[Builder, Value, Value], tuple[Rest, Value]]


def of_any_angle(
    b: Builder,
    angles: Value,
    usual: Function,
    finish: Callable[[Builder, Value, Rest, Value], Value],
    name: str,
    how: Reduction[Rest],
) -> Value:
    """
    Return `usual(b, angles)`; in lanes with large angles, the result of `finish` for angle, remainder and multiple.

    All are of the type that `how` reduces, or vectors of it. Functions with equal `name` share code. The function gets
    the angles of a whole vector and returns its results in memory, so that callers keep nothing in memory where it is
    not called.
    """

    def replaced() -> Sequence[Value]:
        function = b.module.shared(name, lambda name: _build(b.module, name, usual, finish, how))
        buffer = b.stack(how.element, angles.lanes)
        buffer.store(angles)
        b.call(function, [buffer, angles.lanes])
        return [buffer.load(angles.type)]

    return b.either(b.any(b.fabs(angles) >= how.large), replaced, lambda: [usual(b, angles)])[0]


def _build(
    module: ModuleBuilder,
    name: str,
    usual: Function,
    finish: Callable[[Builder, Value, Rest, Value], Value],
    how: Reduction[Rest],
) -> None:
    with define_function(module, name, [ptr, index_type], internal=True, inline=False, cold=True) as (b, arguments):
        angles, count = arguments
        table = b.symbol(module.table(_table()))
        with b.loop(0, count) as i:
            angle = angles.at(i, how.element).load(how.element)
            magnitude = b.fabs(angle)
            angles.at(i, how.element).store(usual(b, angle))
            with b.when((magnitude >= how.large) & (magnitude < math.inf)):
                angles.at(i, how.element).store(finish(b, angle, *how.reduce(b, table, angle)))


# ---- f64


def _reduce(b: Builder, table: Value, angle: Value) -> tuple[Value, Value]:
    bits = b.bits_of(b.fabs(angle))
    mantissa = (bits & ((1 << _FORM.mantissa) - 1)) | (1 << _FORM.mantissa)
    exponent = (bits >> _FORM.mantissa) - (_FORM.bias + _FORM.mantissa)
    window, shift = _window(table, exponent, 192)
    low, middle, high = (window.at(8 * i, i8).load(i64, align=1) for i in range(3))
    scaled = mantissa << shift
    # Two bits of quarter turns, and 126 of a fraction.
    upper, lower = wide_product(b, scaled, middle)
    added, _ = wide_product(b, scaled, low)
    lower = lower + added
    upper = upper + scaled * high + b.cast(b.compare("ult", lower, added), i64)
    multiple = b.lshr(upper + (1 << 61), 62)
    upper = upper - (multiple << 62)
    below = upper < 0
    negated_upper = ~upper + b.cast(lower.eq(0), i64)
    magnitude = _quarter_turns(b, b.select(below, negated_upper, upper), b.select(below, -lower, lower))
    rest, negative = b.select(below, -magnitude, magnitude), angle < 0.0
    return b.select(negative, -rest, rest), b.select(negative, -multiple, multiple)


def _window(table: Value, exponent: Value, bits: int) -> tuple[Value, Value]:
    """
    Return the address of the bits of 2/pi that count for `m 2^exponent`, and the shift of m for them.

    The window starts at the bit whose product with m is worth two turns, rounded to a byte; the shift of m makes up for
    the rest.
    """
    skipped = exponent - 2
    shift = skipped & 7
    return table.at((TABLE_BITS - bits - (skipped - shift)) >> 3, i8), shift


def _quarter_turns(b: Builder, upper: Value, lower: Value) -> Value:
    """Return an integer in two halves, which is not zero, times pi/2 and 2^-126, rounded to the nearest f64."""
    short = upper.eq(0)
    first = b.select(short, lower, upper)
    zeros = b.intrinsic("llvm.ctlz", (first, b.constant(1, i1)), i64)
    behind = b.lshr(b.lshr(lower, 1), 63 - zeros)
    leading = (first << zeros) | b.select(short, 0, behind)
    zeros = b.select(short, zeros + 64, zeros)
    # 62 bits or 63, as a positive i64; the integer is worth 2^(-60 - zeros).
    product = b.lshr(wide_product(b, leading, b.constant(HALF_PI_IN_64_BITS, i64))[0], 1)
    power = (_FORM.bias - 60 - zeros) << _FORM.mantissa
    return to_float(b, product, f64, signed=True) * b.bitcast(power, f64)


# ---- pairs of f32


def _reduce_to_pair(b: Builder, table: Value, angle: Value) -> tuple[Pair, Value]:
    form = FORMATS[32]
    bits = b.bits_of(b.fabs(angle))
    mantissa = (bits & ((1 << form.mantissa) - 1)) | (1 << form.mantissa)
    exponent = (bits >> form.mantissa) - (form.bias + form.mantissa)
    window, shift = _window(table, exponent, 96)
    words = (b.cast(window.at(4 * i, i8).load(i32, align=1), i64, signed=False) for i in range(3))
    scaled = b.cast(mantissa << shift, i64, signed=False)
    low, middle, high = (scaled * word for word in words)
    # Two bits of quarter turns, and 62 of a fraction.
    turns = b.lshr(low, 32) + middle + (high << 32)
    multiple = b.lshr(turns + (1 << 61), 62)
    signed = turns - (multiple << 62)
    # Parts that an f32 holds, the highest with the sign.
    first, second = b.cast(b.ashr(signed, 40), i32), b.cast(b.lshr(signed, 16), i32) & 0xFFFFFF
    third = b.cast(signed, i32) & 0xFFFF
    parts = [b.cast(part, f32) * 2.0**power for part, power in ((first, -22), (second, -46), (third, -62))]
    fraction = ordered_sum(parts[0], parts[1])
    fraction = ordered_sum(fraction.high, fraction.low + parts[2])
    rest = multiply(b, fraction, constant_pair(b, HALF_PI_OF_F32, angle))
    negative, multiple = angle < 0.0, b.cast(multiple, i32)
    return select(b, negative, negated(rest), rest), b.select(negative, -multiple, multiple)


WHOLE = Reduction(f64, LARGE, _reduce)
"""Angles of f64, whose rest is an f64."""

PAIRED = Reduction(f32, LARGE_OF_PAIRS, _reduce_to_pair)
"""Angles of f32, whose rest is a pair."""
