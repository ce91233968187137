"""
Angles reduced exactly, however large they are (Payne and Hanek 1983).

An angle is `m 2^e` with an integer m of 53 bits. Of its quotient by pi/2 only the last two bits before the point and
the bits behind it matter, and they come from a window of 192 bits of 2/pi: those before the window give multiples of
four, those behind it less than 2^-129. The nearest that an f64 comes to a multiple of pi/2 is about 2^-61, so that the
rest still has more bits than a float, and is rounded once.

This is scalar code, a function of the module that is rarely called: by vectors of which one lane is large, for all of
their lanes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f64, i1, i8, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_format import FORMATS, Function

LARGE = 2.0**22
"""From this magnitude on the table has bits for an angle."""

TABLE_BITS = 1168
"""How many bits of 2/pi behind the point the table has: those before the window of the largest f64, and 192 more."""

LEADING_BITS = 32
"""The zeros before the point: how far the window of `LARGE` reaches beyond it."""

HALF_PI_IN_64_BITS = 0xC90FDAA22168C235
"""pi/2 times 2^63."""

_FORM = FORMATS[64]
_i128 = IntegerType(128)


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


Reduced = Callable[[Builder, Value, Value, Value], Value]
"""What makes a result of an angle, its rest within +-pi/4, and its multiple of pi/2, of which two bits are right."""


def of_any_angle(b: Builder, angles: Value, usual: Function, finish: Reduced, name: str) -> Value:
    """
    Return `usual(b, angles)`, or in the lanes of finite angles of at least `LARGE` what `finish` makes.

    All are f64, or vectors of f64. Functions with equal `name` share code. It has the angles and gives the results of a
    whole vector, so that its callers keep nothing in memory where it is not called.
    """

    def replaced() -> Sequence[Value]:
        function = b.module.shared(name, lambda name: _build(b.module, name, usual, finish))
        buffer = b.stack(f64, angles.lanes)
        buffer.store(angles)
        b.call(function, [buffer, angles.lanes])
        return [buffer.load(angles.type)]

    return b.either(b.any(b.fabs(angles) >= LARGE), replaced, lambda: [usual(b, angles)])[0]


def _build(module: ModuleBuilder, name: str, usual: Function, finish: Reduced) -> None:
    with define_function(module, name, [ptr, i64], internal=True, inline=False, cold=True) as (b, arguments):
        angles, count = arguments
        table = b.symbol(module.table(_table()))
        with b.loop(0, count) as i:
            angle = angles.at(i, f64).load(f64)
            magnitude = b.fabs(angle)
            angles.at(i, f64).store(usual(b, angle))
            with b.when((magnitude >= LARGE) & (magnitude < math.inf)):
                rest, multiple = _reduce(b, table, b.bits_of(magnitude))
                negative = angle < 0.0
                rest, multiple = b.select(negative, -rest, rest), b.select(negative, -multiple, multiple)
                angles.at(i, f64).store(finish(b, angle, rest, multiple))


def _reduce(b: Builder, table: Value, bits: Value) -> tuple[Value, Value]:
    """Return rest and multiple for the bits of a magnitude."""
    mantissa = (bits & ((1 << _FORM.mantissa) - 1)) | (1 << _FORM.mantissa)
    exponent = (bits >> _FORM.mantissa) - (_FORM.bias + _FORM.mantissa)
    # The window starts at the bit whose product with m is worth two turns; of eight bits, m makes up for the rest.
    skipped = exponent - 2
    window = table.at((TABLE_BITS - 192 - (skipped - (skipped & 7))) >> 3, i8)
    low, middle, high = (window.at(8 * i, i8).load(i64, align=1) for i in range(3))
    scaled = mantissa << (skipped & 7)
    # Two bits of quarter turns, and 126 of a fraction.
    turns = _product(b, scaled, middle) + b.lshr(_product(b, scaled, low), 64) + (_wide(b, scaled * high) << 64)
    multiple = b.lshr(_upper(b, turns) + (1 << 61), 62)
    signed = turns - (_wide(b, multiple) << 126)
    below = signed < 0
    rest = _quarter_turns(b, b.select(below, -signed, signed))
    return b.select(below, -rest, rest), multiple


def _quarter_turns(b: Builder, fraction: Value) -> Value:
    """Return an i128 that is not zero, times pi/2 and 2^-126, rounded to the nearest f64."""
    zeros = b.intrinsic("llvm.ctlz", (fraction, b.constant(1, i1)), _i128)
    leading = _upper(b, fraction << zeros)
    # 62 bits or 63, as a positive i64; the integer is worth 2^(-60 - zeros).
    product = b.lshr(_upper(b, _product(b, leading, b.constant(HALF_PI_IN_64_BITS, i64))), 1)
    power = (_FORM.bias - 60 - b.cast(zeros, i64)) << _FORM.mantissa
    return b.cast(product, f64) * b.bitcast(power, f64)


def _wide(b: Builder, x: Value) -> Value:
    return b.cast(x, _i128, signed=False)


def _upper(b: Builder, x: Value) -> Value:
    return b.cast(b.lshr(x, 64), i64)


def _product(b: Builder, x: Value, y: Value) -> Value:
    """The product of two unsigned i64, as an i128."""
    return _wide(b, x) * _wide(b, y)
