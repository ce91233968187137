"""PyTorch's arithmetic on two or more operands: sums, products, quotients, remainders, powers, extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, is_float, numpy_dtype
from glow_mlir.dialects.expressions import (
    Tensor,
    converted,
    equal,
    floor,
    fma,
    maximum,
    minimum,
    not_equal,
    trunc,
    where,
)
from glow_mlir.dialects.expressions import binary as operation
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_math import BitCastOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.builder.complex_formulas import hypot
from glow_mlir.frontends.builder.float_bits import angle, bits, next_float, sign_bit
from glow_mlir.frontends.torch.formulas import computed, formula_operator
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import Operand, TorchNode

ON_TRUTH_VALUES: Mapping[type[HighOp], type[HighOp]] = {
    binary.AddOp: binary.OrOp,
    binary.MaxOp: binary.OrOp,
    binary.MinOp: binary.AndOp,
    binary.MulOp: binary.AndOp,
}
"""Operator on numbers → its equivalent on truth values."""


def combined(node: TorchNode, operator: type[HighOp], one: Operand, other: Operand) -> SSAValue:
    """Apply a binary operator to operands converted to the result's element type; the result has the traced sizes."""
    if is_bool(node.element):
        operator = ON_TRUTH_VALUES[operator]
    return node.expanded(node.emit(operator, node.tensor(one), node.tensor(other)))


def _on_both(operator: type[HighOp]) -> Callable[..., SSAValue]:
    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        return combined(node, operator, one, other)

    return run


formula_operator("prims.fma.default")(fma)

BINARY: Mapping[str, type[HighOp]] = {
    "mul": binary.MulOp,
    "maximum": binary.MaxOp,
    "minimum": binary.MinOp,
}

for _name, _operator in BINARY.items():
    for _overload in ("default", "Tensor", "Scalar"):
        torch_operator(f"{_name}.{_overload}")(_on_both(_operator))


def _with_factor(operator: type[HighOp], formula: Callable[..., Tensor]) -> Callable[..., SSAValue]:
    """A binary operator whose second operand is multiplied by `alpha`."""

    def run(node: TorchNode, one: Operand, other: Operand, alpha: float = 1) -> SSAValue:
        if alpha == 1 or is_bool(node.element):
            return combined(node, operator, one, other if alpha else False)
        if is_float(node.element):
            return computed(node, formula, one, other, alpha)
        return combined(node, operator, one, node.emit(binary.MulOp, node.tensor(other), node.tensor(alpha)))

    return run


def _scaled_sum(x: Tensor, y: Tensor, alpha: Tensor) -> Tensor:
    return x + y * alpha


def _scaled_difference(x: Tensor, y: Tensor, alpha: Tensor) -> Tensor:
    return x - y * alpha


torch_operator("add.Tensor", "add.Scalar")(_with_factor(binary.AddOp, _scaled_sum))
torch_operator("sub.Tensor", "sub.Scalar")(_with_factor(binary.SubOp, _scaled_difference))


@torch_operator("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def div(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The quotient as a float, even for integers."""
    return combined(node, binary.DivOp, one, other)


def truncated_quotient(x: Tensor, y: Tensor) -> Tensor:
    """The quotient, rounded toward 0."""
    return trunc(x / y) if is_float(x.element) else x / y


def floored_quotient(x: Tensor, y: Tensor) -> Tensor:
    """
    The quotient, rounded down, so that the remainder has the sign of the divisor.

    For floats it is computed from the exact remainder, as in Python, because the quotient may have been rounded up.
    """
    rest = x % y
    is_lower = not_equal(rest, 0) & ((rest < 0) ^ (y < 0))
    if not is_float(x.element):
        return where(is_lower, x / y - 1, x / y)
    whole = (x - rest) / y
    whole = where(is_lower, whole - 1.0, whole)
    lower = floor(whole)
    near = where(whole - lower > 0.5, lower + 1.0, lower)
    return where(equal(y, 0.0), x / y, near)


ROUNDED: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {"floor": floored_quotient, "trunc": truncated_quotient}
"""Rounding mode → the formula of the quotient."""


@torch_operator("div.Tensor_mode", "div.Scalar_mode")
def rounded_quotient(node: TorchNode, one: Operand, other: Operand, *, rounding_mode: str | None = None) -> SSAValue:
    """The quotient as a whole number, in the type of the operands."""
    if rounding_mode is None:
        return div(node, one, other)
    formula = ROUNDED[rounding_mode]
    if is_float(node.element) and formula is floored_quotient:
        return computed(node, formula, one, other)
    return node.expanded(node.value(formula(node.of(one), node.of(other))))


def _remainder(fmod: bool) -> Callable[..., SSAValue]:
    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        return node.expanded(node.emit(binary.ModOp, node.tensor(one), node.tensor(other), fmod=fmod))

    return run


_OVERLOADS = ("Tensor", "Scalar", "Scalar_Tensor")
torch_operator(*(f"remainder.{_overload}" for _overload in _OVERLOADS))(_remainder(fmod=False))
torch_operator(*(f"fmod.{_overload}" for _overload in _OVERLOADS))(_remainder(fmod=True))


@torch_operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """One number to the power of another."""
    if is_bool(node.element):  # Only False to the power of True is False.
        return node.expanded(node.value(node.of(one) | equal(node.of(other), False)))
    return node.expanded(node.emit(binary.PowOp, node.tensor(one), node.tensor(other)))


@formula_operator("ldexp.Tensor")
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """x · 2^exponent."""
    return x * 2.0**exponent


formula_operator("hypot.default")(hypot)


@torch_operator("signbit.default")
def signbit(node: TorchNode, value: SSAValue) -> SSAValue:
    """Whether numbers have a minus sign."""
    if is_bool(element_of(value)):
        return node.splat(0, node.element, node.sizes)
    if is_float(element_of(value)):
        return node.value(sign_bit(node.formulas, value))
    return node.value(node.formulas.of(value) < 0)


@torch_operator("copysign.Tensor", "copysign.Scalar")
def copysign(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The magnitude of one number with the sign of another."""
    magnitude = abs(node.of(one))
    return node.expanded(node.value(where(sign_bit(node.formulas, node.tensor(other)), -magnitude, magnitude)))


@torch_operator("atan2.default")
def atan2(node: TorchNode, y: Operand, x: Operand) -> SSAValue:
    """The angle of the point (x, y), from -π to π."""
    rise, run = node.tensor(y), node.tensor(x)

    def formula(y: Tensor, x: Tensor) -> Tensor:
        return angle(y, x, sign_bit(node.formulas, rise), sign_bit(node.formulas, run))

    return computed(node, formula, rise, run)


def _larger_number(x: Tensor, y: Tensor) -> Tensor:
    return where(not_equal(x, x), y, where(not_equal(y, y), x, maximum(x, y)))


def _smaller_number(x: Tensor, y: Tensor) -> Tensor:
    return where(not_equal(x, x), y, where(not_equal(y, y), x, minimum(x, y)))


def _unless_nan(operator: type[HighOp], formula: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., SSAValue]:
    """An extreme of two numbers that ignores NaN."""

    def run(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
        if not is_float(node.element):
            return combined(node, operator, one, other)
        return node.expanded(node.value(formula(node.of(one), node.of(other))))

    return run


torch_operator("fmax.default")(_unless_nan(binary.MaxOp, _larger_number))
torch_operator("fmin.default")(_unless_nan(binary.MinOp, _smaller_number))


@torch_operator("nextafter.default")
def nextafter(node: TorchNode, one: Operand, other: Operand) -> SSAValue:
    """The next float after a number in the direction of another."""
    return node.expanded(node.value(next_float(node.formulas, node.tensor(one), node.tensor(other))))


FIELDS: Mapping[str, tuple[int, int]] = {
    "bfloat16": (7, 8),
    "float16": (10, 5),
    "float32": (23, 8),
    "float64": (52, 11),
}
"""Name of a float type → the numbers of bits of its significand and exponent."""


@torch_operator("frexp.Tensor")
def frexp(node: TorchNode, value: SSAValue) -> list[SSAValue]:
    """Mantissa in [0.5, 1) and exponent, such that the value is mantissa · 2^exponent."""
    digits, exponent_bits = FIELDS[numpy_dtype(element_of(value)).name]
    bias, unit = (1 << (exponent_bits - 1)) - 2, 1 << digits
    mask = ((1 << exponent_bits) - 1) * unit
    x = node.formulas.of(value)
    is_tiny, is_plain = abs(x) < 2.0**-bias, (abs(x) < math.inf) & not_equal(x, 0.0)
    own = bits(node.formulas, node.value(where(is_tiny, x * float(unit), x)))
    exponent = operation("and", own, mask) / unit - where(is_tiny, bias + digits, own * 0 + bias)
    fraction = node.emit(BitCastOp, node.value(operation("and", own, ~mask) + bias * unit), to=element_of(value))
    found = where(is_plain, node.formulas.of(fraction), x)
    return [node.value(found), node.value(converted(where(is_plain, exponent, 0), i32))]
