"""
Square roots; on machines without an instruction for them, a function of the module computes them in integers.

As in manual calculation, each iteration turns two digits of the number into one digit of the root.
"""

from __future__ import annotations

import math

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import type_info
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math.float_format import FloatFormat, format_of
from glow_mlir.codegen.math.lanewise import call_for_each_lane


def square_root(b: Builder, x: Value) -> Value:
    """Return the correctly rounded square root of an f32 or f64, or of each lane; of a negative number, NaN."""
    if b.target.computes(x.info.bits):
        return b.sqrt(x)
    form = format_of(x)
    function = b.module.shared(f"sqrt.f{x.info.bits}", lambda name: _build(b.module, name, form))
    return call_for_each_lane(b, function, x)


def _build(module: ModuleBuilder, name: str, form: FloatFormat) -> None:
    with define_function(module, name, [form.type], form.type, internal=True, inline=False) as (b, (x,)):
        tiny = x < form.smallest_normal
        # An even power of two, so that its root is one.
        up = form.mantissa + 2 - form.mantissa % 2
        bits = b.bits_of(b.select(tiny, x * 2.0**up, x))
        exponent = b.ashr(bits, form.mantissa) - form.bias
        mantissa = (bits & ((1 << form.mantissa) - 1)) | (1 << form.mantissa)
        root = _digits(b, mantissa << (exponent & 1), form)
        half = b.ashr(exponent, 1) - b.select(tiny, up // 2, b.constant(0, form.integer))
        # The leading digit of the root counts as one in the exponent.
        result = b.bitcast(root + ((half + (form.bias - 1)) << form.mantissa), form.type)
        usual = (x > 0.0) & (x < math.inf)
        b.give_back(b.select(usual, result, b.select(x < 0.0, b.constant(math.nan, form.type), x)))


def _digits(b: Builder, number: Value, form: FloatFormat) -> Value:
    """
    Return the square root, rounded to the bits of a float, of a number with as many bits before the point, or one more.
    """
    zero = b.constant(0, form.integer)
    # The number is at the top of the word, so that its leading pair of digits is next.
    word = type_info(form.integer).bits
    with b.loop(0, form.mantissa + 2, carried=[number << (word - form.mantissa - 2), zero, zero]) as loop:
        digits, rest, root = loop.values
        rest = (rest << 2) | b.lshr(digits, word - 2)
        fits = rest > root << 2
        reduced = b.select(fits, rest - ((root << 2) | 1), rest)
        loop.set(digits << 2, reduced, (root << 1) | b.cast(fits, form.integer))
    # One digit more than the float holds, and never half way.
    return b.lshr(loop.results[2] + 1, 1)
