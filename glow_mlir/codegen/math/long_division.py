"""
Division of integers; on machines without an instruction for 64 bits, a function of the module divides them.

The divisor is not zero, and the smallest integer is not divided by -1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.lanewise import call_for_each_lane, each_lane

_LOWER = (1 << 32) - 1

_BITS_IN_SINGLES, _BITS_IN_DOUBLES = 16, 32
"""Integers of up to so many bits have quotients that truncated floats of 32 or 64 bits give exactly."""

Divide = Callable[[Builder, Value, Value], Value]


class Division(Protocol):
    """An operation on two integers, or vectors of them, of one type."""

    def __call__(self, b: Builder, x: Value, y: Value, by_number: bool = False) -> Value:
        """Return the result; `by_number` says that LLVM knows the divisor, and multiplies instead."""
        ...


_INSTRUCTIONS: dict[str, Divide] = {
    "sdiv": Builder.sdiv,
    "udiv": Builder.udiv,
    "srem": Builder.srem,
    "urem": Builder.urem,
}


def _operation(name: str) -> Division:
    """The operation of that name, as instruction or function."""

    def divide(b: Builder, x: Value, y: Value, by_number: bool = False) -> Value:
        instruction = _INSTRUCTIONS[name]
        if not by_number and x.lanes > 1 and x.info.bits <= _BITS_IN_DOUBLES and b.target.is_x86:
            return _by_floats(b, x, y, name)
        if b.target.wide_integers:
            return instruction(b, x, y)
        if x.info.bits < 64:
            # LLVM widens short vectors to elements of 64 bits.
            return each_lane(b, functools.partial(instruction, b), x, y)
        function = b.module.shared(f"{name}.i64", lambda function: _build(b.module, function, name))
        return call_for_each_lane(b, function, x, y)

    return divide


signed_quotient = _operation("sdiv")
"""The quotient of two signed integers or vectors of them, towards zero."""

quotient = _operation("udiv")
"""The quotient of two unsigned integers or vectors of them."""

signed_remainder = _operation("srem")
"""The remainder of two signed integers or vectors of them, with the sign of the first."""

remainder = _operation("urem")
"""The remainder of two unsigned integers or vectors of them."""


def _by_floats(b: Builder, x: Value, y: Value, name: str) -> Value:
    """
    The same of vectors, for which x86 divides floats alone.

    A quotient is a whole number or further from one than a float is rounded: by the reciprocal of the dividend.
    """
    signed, element = name[0] == "s", x.info.element
    carrier = f32 if x.info.bits <= _BITS_IN_SINGLES else f64
    quotient = b.cast(b.fdiv(*(b.cast(value, carrier, signed=signed) for value in (x, y))), element, signed=signed)
    return x - quotient * y if name.endswith("rem") else quotient


def _build(module: ModuleBuilder, function: str, name: str) -> None:
    with define_function(module, function, [i64, i64], i64, internal=True, inline=False) as (b, (x, y)):
        if name.startswith("u"):
            b.give_back(_divide(b, x, y)[name == "urem"])
            return
        magnitudes = (b.select(value < 0, -value, value) for value in (x, y))
        result = _divide(b, *magnitudes)[name == "srem"]
        negative = x < 0 if name == "srem" else (x ^ y) < 0
        b.give_back(b.select(negative, -result, result))


def _divide(b: Builder, x: Value, y: Value) -> list[Value]:
    """Return quotient and remainder of two unsigned i64."""

    def short() -> list[Value]:
        dividend, divisor = b.cast(x, i32), b.cast(y, i32)
        results = (b.udiv(dividend, divisor), b.urem(dividend, divisor))
        return [b.cast(result, i64, signed=False) for result in results]

    return b.either(b.compare("ule", x | y, _LOWER), short, lambda: _long_division(b, x, y))


def _long_division(b: Builder, x: Value, y: Value) -> list[Value]:
    """Return quotient and remainder of two unsigned i64, one bit of the quotient per iteration."""
    with b.loop(0, 64, carried=[x, b.constant(0, i64)]) as loop:
        # The bits of the dividend leave at the top, and those of the quotient come in below.
        bits, rest = loop.values
        carried = rest < 0
        rest = (rest << 1) | b.lshr(bits, 63)
        fits = carried | b.compare("uge", rest, y)
        loop.set((bits << 1) | b.cast(fits, i64), b.select(fits, rest - y, rest))
    return loop.results
