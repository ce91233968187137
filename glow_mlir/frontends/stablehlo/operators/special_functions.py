"""The functions of CHLO: error functions, the Gamma function and related ones, and angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, f32, f64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.expressions import Tensor, acos, equal, exp, floor, not_equal, where
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.elementwise_math import IsInfOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.bessel_functions import scaled_bessel_i1
from glow_mlir.frontends.builder.float_bits import angle, sign_bit
from glow_mlir.frontends.builder.special_functions import (
    BERNOULLI,
    SHIFT,
    digamma,
    erfc,
    erfinv,
    lgamma,
)
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded


def digamma_formula(x: Tensor) -> Tensor:
    """The derivative of lgamma; NaN at 0 and at negative integers, as in XLA."""
    return where(equal(x, 0.0), math.nan, where(equal(x, math.inf), x, digamma(x)))


FORMULAS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "chlo._asin_acos_kernel": acos,
    "chlo.bessel_i1e": scaled_bessel_i1,
    "chlo.digamma": digamma_formula,
    "chlo.erf_inv": erfinv,
    "chlo.erfc": erfc,
    "chlo.lgamma": lgamma,
}
"""Operation → its formula."""

NEAR = frozenset({"chlo.erfc", "chlo._asin_acos_kernel"})
"""The functions whose formula is accurate in the precision of their operands."""


@stablehlo_operator(*FORMULAS)
def formula(node: StablehloNode) -> SSAValue:
    """A function of one number, computed in f64 where its formula cancels digits."""
    value = node.input()
    wide = f32 if node.kind in NEAR and byte_width(element_of(value)) <= byte_width(f32) else f64
    return computed(node, FORMULAS[node.kind], wide, value)


def computed(node: StablehloNode, formula: Callable[..., Tensor], wide: Attribute, *values: SSAValue) -> SSAValue:
    """A formula of values that is computed in a float type, and rounded once to theirs."""
    found = formula(*(node.formulas.of(node.cast(value, wide)) for value in values))
    return node.cast(node.formulas.value(found), element_of(values[0]))


@stablehlo_operator("atan2")
def atan2(node: StablehloNode) -> Value:
    """The angle of a point, from -π to π."""
    y, x = node.inputs()

    def formula(wide_y: Tensor, wide_x: Tensor) -> Tensor:
        return angle(wide_y, wide_x, sign_bit(node.formulas, y), sign_bit(node.formulas, x))

    wide = f64 if element_of(y) == f64 else f32
    return computed(node, formula, wide, y, x)


@stablehlo_operator("chlo.square")
def square(node: StablehloNode) -> SSAValue:
    """A number by itself."""
    return node.emit(MulOp, node.input(), node.input())


INFINITIES: Mapping[str, tuple[bool, bool]] = {
    "chlo.is_inf": (True, True),
    "chlo.is_neg_inf": (False, True),
    "chlo.is_pos_inf": (True, False),
}
"""Operation → whether it finds ∞ and -∞."""


@stablehlo_operator(*INFINITIES)
def is_infinite(node: StablehloNode) -> SSAValue:
    """Whether a number is an infinity."""
    positive, negative = INFINITIES[node.kind]
    return node.emit(IsInfOp, node.input(), positive=positive, negative=negative)


@stablehlo_operator("chlo.constant_like")
def constant_like(node: StablehloNode) -> Value:
    """A tensor of the shape of another one, with equal elements."""
    found, shape = node.properties["value"], sizes_of(node.input())
    numbers = cast("Sequence[Attribute]", found.data) if isinstance(found, ArrayAttr) else [found]
    parts = [
        expanded(node, node.splat(number.value.data, node.input()), shape)
        for number in numbers
        if isinstance(number, FloatAttr | IntegerAttr)
    ]
    return parts[0] if len(parts) == 1 else node.complex(*parts)


# ---- Zeta functions


def zeta_formula(s: Tensor, q: Tensor) -> Tensor:
    """
    Σ (q + k)^-s over all k ≥ 0 (Euler and Maclaurin).

    Infinite for s = 1, and for q that is 0 or a negative integer if s is even or q is 0; NaN for s < 1, and for
    negative q where (q + k)^-s is not real.
    """
    total = s * 0.0
    for step in range(SHIFT):
        total = total + (q + float(step)) ** -s
    far = q + float(SHIFT)
    last = far**-s
    total = total + last * far / (s - 1.0) + last * 0.5
    factor, term = s, last / far
    for position, number in enumerate(BERNOULLI, 1):
        total = total + term * factor * (number / math.factorial(2 * position))
        factor = factor * (s + float(2 * position - 1)) * (s + float(2 * position))
        term = term / (far * far)
    is_whole, is_even = equal(floor(q), q), equal(floor(s * 0.5), s * 0.5)
    is_pole = (q <= 0.0) & is_whole
    total = where(is_pole & is_even & equal(floor(s), s), math.inf, where(is_pole, math.nan, total))
    total = where((q < 0.0) & not_equal(q, floor(q)) & not_equal(s, floor(s)), math.nan, total)
    total = where(equal(s, math.inf) & (q > 1.0), 0.0, where(equal(s, math.inf) & equal(q, 1.0), 1.0, total))
    return where(equal(s, 1.0), math.inf, where(s < 1.0, math.nan, total))


@stablehlo_operator("chlo.zeta")
def zeta(node: StablehloNode) -> SSAValue:
    """Hurwitz's zeta function."""
    return computed(node, zeta_formula, f64, *node.inputs())


def polygamma_formula(order: Tensor, x: Tensor) -> Tensor:
    """The derivative of digamma of an order, which is a whole number; NaN for another one."""
    sign = where(equal(floor(order * 0.5) * 2.0, order), -1.0, order * 0.0 + 1.0)
    factorial = exp(lgamma(order + 1.0))
    found = sign * factorial * zeta_formula(order + 1.0, x)
    found = where(equal(order, 0.0), digamma_formula(x), found)
    return where((order < 0.0) | not_equal(order, floor(order)), math.nan, found)


@stablehlo_operator("chlo.polygamma")
def polygamma(node: StablehloNode) -> SSAValue:
    """A derivative of digamma, whose order is an operand."""
    return computed(node, polygamma_formula, f64, *node.inputs())
