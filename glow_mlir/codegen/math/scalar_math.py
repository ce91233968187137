"""
Mathematical functions without a library: one table, from the names of MLIR's `math` dialect to code.

Every function takes floats or vectors of floats, f32 or f64 (f16 and bf16 go through f32), and consists only of
instructions: compiled code calls no symbol. NaN gives NaN, infinities and zeros follow IEEE 754, and denormal numbers
are handled like others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.math import exponentials, logarithms, special_functions, trigonometry
from glow_mlir.codegen.math.fused import fma
from glow_mlir.codegen.math.roots import square_root
from glow_mlir.dialects import math

MathFunction = Callable[..., Value]
"""Takes the builder and one to three values, and gives one value."""


def round_half_away(b: Builder, x: Value) -> Value:
    """Return the nearest integral value, ties away from zero."""
    # The largest number below one half: one half itself would round 0.49999997 up to 1.
    below_half = 0.5 - 2.0 ** -{32: 25, 64: 54}[x.info.bits]
    return b.truncate(x + b.copysign(below_half, x))


def rsqrt(b: Builder, x: Value) -> Value:
    """Return the reciprocal of the square root."""
    return 1.0 / square_root(b, x)


def absi(b: Builder, x: Value) -> Value:
    """Return the absolute value of a signed integer; the smallest one stays."""
    return b.select(x < 0, -x, x)


def isnan(b: Builder, x: Value) -> Value:
    """Return whether a value is NaN, as i1."""
    return b.compare("uno", x, x)


def isinf(b: Builder, x: Value) -> Value:
    """Return whether a value is infinite, as i1."""
    return b.fabs(x).eq(float("inf"))


def isfinite(b: Builder, x: Value) -> Value:
    """Return whether a value is neither infinite nor NaN, as i1."""
    return b.fabs(x) < float("inf")


def clampf(b: Builder, x: Value, low: Value, high: Value) -> Value:
    """Return `x` clamped to `low` and `high`; a NaN stays."""
    return b.max(low, b.min(high, x))


def fpowi(b: Builder, x: Value, y: Value) -> Value:
    """Return a float to the power of a signed integer."""
    return logarithms.powf(b, x, b.cast(y, x.info.element))


def _through_f32(function: MathFunction) -> MathFunction:
    """Return `function` extended to the 16-bit formats: operands are widened, and the result is narrowed again."""

    @functools.wraps(function)
    def wide(b: Builder, *operands: Value) -> Value:
        first = operands[0].info
        if not (first.is_float and first.bits == 16):
            return function(b, *operands)
        widened = (b.cast(operand, f32) if operand.info.is_float else operand for operand in operands)
        result = function(b, *widened)
        return b.cast(result, first.element) if result.info.is_float else result

    return wide


def ctpop(b: Builder, x: Value) -> Value:
    """Return the number of set bits of an integer."""
    return b.intrinsic("llvm.ctpop", (x,), x.type)


_APPROXIMATIONS: dict[str, MathFunction] = {
    name: function
    for module in (exponentials, logarithms, special_functions, trigonometry)
    for name in (op.name.removeprefix("math.") for op in math.MATH.operations)
    if (function := vars(module).get(name)) is not None
}
"""The functions of these modules, by name."""

_FUNCTIONS: dict[str, MathFunction] = {
    **_APPROXIMATIONS,
    "absf": Builder.fabs,
    "absi": absi,
    "ceil": Builder.ceil,
    "clampf": clampf,
    "copysign": Builder.copysign,
    "ctpop": ctpop,
    "floor": Builder.floor,
    "fma": fma,
    "fpowi": fpowi,
    "isfinite": isfinite,
    "isinf": isinf,
    "isnan": isnan,
    "round": round_half_away,
    "roundeven": Builder.round_even,
    "rsqrt": rsqrt,
    "sqrt": square_root,
    "trunc": Builder.truncate,
    # Not in the math dialect: `arith.remf`.
    "remf": special_functions.remf,
}

MATH: dict[str, MathFunction] = {name: _through_f32(function) for name, function in _FUNCTIONS.items()}
"""The functions by the names of MLIR's `math` operations, without the prefix."""

CHAINS = frozenset({*vars(exponentials), *vars(special_functions)} & _APPROXIMATIONS.keys())
"""
The functions that are one long chain of dependent operations.

Logarithms and trigonometric functions are not: they have two or more independent chains.
"""
