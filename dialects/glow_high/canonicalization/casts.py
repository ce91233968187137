"""Rewrites of conversions between element types: the first of two is removed if it loses nothing."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    ReducedPrecisionFloatType,
)
from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.element_types import (
    is_bool,
    is_float,
    is_integer,
    is_narrow,
    is_narrow_float,
    is_narrow_integer,
    is_unsigned,
    number_width,
)
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.shapes import element_of

PRECISIONS: tuple[tuple[type[Attribute], int, int], ...] = (
    (Float64Type, 53, 11),
    (Float32Type, 24, 8),
    (Float16Type, 11, 5),
    (BFloat16Type, 8, 8),
)
"""Float type, bits of its significand, bits of its exponent."""


def precision(element: Attribute) -> tuple[int, int]:
    """Bits of the significand and of the exponent of a float type."""
    if isinstance(element, ReducedPrecisionFloatType):
        return element.SEMANTICS.mantissa_bits + 1, element.SEMANTICS.exponent_bits
    return next((digits, exponent) for type_, digits, exponent in PRECISIONS if isinstance(element, type_))


def width(element: Attribute) -> int:
    """Bits of an integer type without its sign bit."""
    return number_width(element) - (0 if is_unsigned(element) else 1)


def holds(wide: Attribute, narrow: Attribute) -> bool:
    """Whether `wide` represents every number of `narrow`, so that a conversion loses nothing."""
    if is_narrow(wide) or wide == narrow:
        return wide == narrow
    if is_bool(narrow):
        return True
    if is_float(narrow) or is_narrow_float(narrow):
        pairs = zip(precision(wide), precision(narrow), strict=True) if is_float(wide) else ()
        return is_float(wide) and all(more >= less for more, less in pairs)
    if is_float(wide):
        return precision(wide)[0] >= width(narrow)
    return is_integer(wide) and width(wide) >= width(narrow) and (is_unsigned(narrow) or not is_unsigned(wide))


def is_needless(source: Attribute, between: Attribute, target: Attribute) -> bool:
    """
    Whether a conversion by way of `between` gives the same result as a direct conversion to `target`.

    Integers wrap into a narrower integer, but floats saturate: an integer must not become a float in between.
    """
    if all(map(_is_whole, (source, between, target))):
        return holds(between, source) or number_width(target) <= number_width(between)
    saturates = _is_whole(source) and is_float(between) and _is_whole(target)
    return holds(between, source) and (not saturates or holds(target, source))


def _is_whole(element: Attribute) -> bool:
    return is_integer(element) or is_narrow_integer(element)


class CastOfCast(RewritePattern):
    """Remove a conversion that loses nothing, or only what the next one also loses (Glow's OptimizeConversions)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, CastOp) and is_needless(element_of(inner.input), element_of(op.input), op.to):
            rewriter.replace(op, CastOp.make(inner.input, **op.properties, location=op.location))


PATTERNS: Mapping[type[Elementwise], tuple[RewritePattern, ...]] = {CastOp: (CastOfCast(),)}
"""Operator → its patterns."""
