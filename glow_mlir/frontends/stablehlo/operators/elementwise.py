"""Operations on the elements of tensors of one shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, is_bool, is_float, is_narrow_integer, is_unsigned
from glow_mlir.dialects.expressions import Tensor, equal, floor, maximum, where
from glow_mlir.dialects.glow_high.activations import GeluOp, SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    AndOp,
    BitShiftOp,
    BitwiseAndOp,
    BitwiseOrOp,
    BitwiseXorOp,
    DivOp,
    EqualOp,
    GreaterOp,
    GreaterOrEqualOp,
    LessOp,
    LessOrEqualOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    OrOp,
    PowOp,
    SubOp,
    WhereOp,
    XorOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import (
    FLOAT_FUNCTIONS,
    AbsOp,
    BitCastOp,
    BitwiseNotOp,
    CastOp,
    IsInfOp,
    IsNanOp,
    NegOp,
    NotOp,
    ReciprocalOp,
    SignOp,
)
from glow_mlir.dialects.quant import integer_bounds
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.stablehlo.activations import gelu_operand
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, of_floats, part_type, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded

FUNCTIONS: Mapping[str, type[HighOp]] = {
    "abs": AbsOp,
    "ceil": FLOAT_FUNCTIONS["ceil"],
    "cosine": FLOAT_FUNCTIONS["cos"],
    "exponential": FLOAT_FUNCTIONS["exp"],
    "exponential_minus_one": FLOAT_FUNCTIONS["expm1"],
    "floor": FLOAT_FUNCTIONS["floor"],
    "log": FLOAT_FUNCTIONS["log"],
    "log_plus_one": FLOAT_FUNCTIONS["log1p"],
    "logistic": SigmoidOp,
    "negate": NegOp,
    "round_nearest_even": FLOAT_FUNCTIONS["round_even"],
    "sine": FLOAT_FUNCTIONS["sin"],
    "sqrt": FLOAT_FUNCTIONS["sqrt"],
    "tan": FLOAT_FUNCTIONS["tan"],
    "tanh": TanhOp,
    **{f"chlo.{word}": FLOAT_FUNCTIONS[word] for word in "acos acosh asin asinh atan atanh cosh erf sinh tan".split()},
}
"""Operation → the operator with the same meaning."""

PAIRS: Mapping[str, type[HighOp]] = {
    "add": AddOp,
    "subtract": SubOp,
    "multiply": MulOp,
    "divide": DivOp,
    "maximum": MaxOp,
    "minimum": MinOp,
    "power": PowOp,
}
"""Operation on numbers → the operator with the same meaning."""

TRUTH_VALUES: Mapping[str, type[HighOp]] = {
    "add": OrOp,
    "multiply": AndOp,
    "maximum": OrOp,
    "minimum": AndOp,
    "and": AndOp,
    "or": OrOp,
    "xor": XorOp,
}
"""Operation on truth values → the operator with the same meaning."""

BITS: Mapping[str, type[HighOp]] = {"and": BitwiseAndOp, "or": BitwiseOrOp, "xor": BitwiseXorOp}
"""Operation on the bits of integers → the operator with the same meaning."""

COMPARISONS: Mapping[str, type[HighOp]] = {
    "EQ": EqualOp,
    "LT": LessOp,
    "LE": LessOrEqualOp,
    "GT": GreaterOp,
    "GE": GreaterOrEqualOp,
}
"""Direction of a comparison → operator."""


@stablehlo_operator(*FUNCTIONS)
def function(node: StablehloNode) -> SSAValue:
    """A function of one number."""
    kind = node.kind.removeprefix("stablehlo.")
    return node.emit(FUNCTIONS[kind], node.input())


@stablehlo_operator("not")
def not_(node: StablehloNode) -> SSAValue:
    """The opposite of truth values, or the bits of integers flipped."""
    return node.emit(NotOp if is_bool(element_of(node.input())) else BitwiseNotOp, node.input())


@stablehlo_operator(*PAIRS, *BITS)
def pair(node: StablehloNode) -> SSAValue:
    """An operator on two numbers, the bits of two integers, or two truth values."""
    kind = node.kind.removeprefix("stablehlo.")
    one, other = node.inputs()
    if kind == "multiply" and (operand := gelu_operand(node.op)) is not None:
        return node.emit(GeluOp, *node.known_values(operand))
    operators = TRUTH_VALUES if is_bool(element_of(one)) else {**PAIRS, **BITS}
    if kind not in operators:
        raise node.unsupported("of truth values is not supported")
    if kind in OF_INTEGERS and not is_float(element_of(one)):
        return OF_INTEGERS[kind](node, one, other)
    return node.emit(operators[kind], one, other)


def _divided(node: StablehloNode, one: SSAValue, other: SSAValue) -> SSAValue:
    """The quotient of integers, rounded to zero; all bits are 1 for a divisor of 0, as in XLA."""
    return _unless_zero(node, node.emit(DivOp, one, other), other, lambda: node.emit(BitwiseNotOp, node.splat(0, one)))


def _unless_zero(
    node: StablehloNode, found: SSAValue, divisor: SSAValue, otherwise: Callable[[], SSAValue]
) -> SSAValue:
    """A result, or another one where the divisor is 0; known divisors that are not cost nothing."""
    known = node.fold(divisor)
    if known is not None and known.all():
        return found
    return node.emit(WhereOp, node.emit(EqualOp, divisor, node.splat(0, divisor)), otherwise(), found)


def _power(node: StablehloNode, one: SSAValue, other: SSAValue) -> SSAValue:
    """A power of integers; one with a negative exponent is 0 unless the base is 1 or -1."""
    if is_unsigned(element_of(one)):
        return node.emit(PowOp, one, other)
    x, y = node.formulas.of(one), node.formulas.of(other)
    is_odd = equal(y % 2, 1) | equal(y % 2, -1)
    inverse = where(equal(x, 1), 1, where(equal(x, -1), where(is_odd, y * 0 - 1, 1), 0))
    return node.formulas.value(where(y < 0, inverse, x ** maximum(y, 0)))


OF_INTEGERS: Mapping[str, Callable[[StablehloNode, SSAValue, SSAValue], SSAValue]] = {
    "divide": _divided,
    "power": _power,
}
"""Operation → its importer for integers, if it has rules of its own for them."""


@stablehlo_operator("remainder")
def remainder(node: StablehloNode) -> SSAValue:
    """The remainder of a division that rounds to zero; for integers, the dividend where the divisor is 0."""
    one, other = node.inputs()
    found = node.emit(ModOp, one, other, fmod=True)
    return found if is_float(element_of(one)) else _unless_zero(node, found, other, lambda: one)


@stablehlo_operator("rsqrt")
def rsqrt(node: StablehloNode) -> SSAValue:
    """1 / √x."""
    return node.emit(ReciprocalOp, node.emit(FLOAT_FUNCTIONS["sqrt"], node.input()))


@stablehlo_operator("cbrt")
def cbrt(node: StablehloNode) -> SSAValue:
    """The cube root: a power of the magnitude, and one step of Newton's method."""
    x = node.input()
    magnitude = node.emit(AbsOp, x)
    root = node.emit(PowOp, magnitude, node.number(1 / 3, x))

    def improved(root: Tensor, magnitude: Tensor, x: Tensor) -> Tensor:
        step = (root - magnitude / (root * root)) * (1 / 3)
        better = where((magnitude > 0.0) & (magnitude < float("inf")), root - step, magnitude)
        return where(x < 0.0, -better, where(x > 0.0, better, x))

    formulas = node.formulas
    return formulas.value(improved(formulas.of(root), formulas.of(magnitude), formulas.of(x)))


@stablehlo_operator("round_nearest_afz")
def round_nearest_afz(node: StablehloNode) -> SSAValue:
    """The nearest integer, halves away from zero."""
    x = node.formulas.of(node.input())
    whole = floor(abs(x))
    rounded = where(abs(x) - whole >= 0.5, whole + 1.0, whole)
    return node.formulas.value(where(x < 0.0, -rounded, where(x > 0.0, rounded, x)))


@stablehlo_operator("sign")
def sign(node: StablehloNode) -> SSAValue:
    """-1, 0 or 1; a zero of floats keeps its sign."""
    value = node.input()
    found = node.emit(SignOp, value)
    if not of_floats(value):
        return found
    return node.emit(WhereOp, node.emit(EqualOp, value, node.splat(0, value)), value, found)


@stablehlo_operator("is_finite")
def is_finite(node: StablehloNode) -> SSAValue:
    """Whether a number is neither infinite nor NaN."""
    x = node.input()
    return node.emit(NotOp, node.emit(OrOp, node.emit(IsInfOp, x), node.emit(IsNanOp, x)))


@stablehlo_operator("compare")
def compare(node: StablehloNode) -> SSAValue:
    """A comparison; one of the total order of floats compares their bits."""
    one, other = node.inputs()
    if node.text("compare_type") == "TOTALORDER":
        one, other = (ordered_bits(node, value) for value in (one, other))
    return compared(node, node.text("comparison_direction"), one, other)


def compared(node: StablehloNode, direction: str, one: SSAValue, other: SSAValue) -> SSAValue:
    """The comparison `EQ`, `NE`, `LT`, `LE`, `GT` or `GE` of two values."""
    if direction == "NE":
        return node.emit(NotOp, node.emit(EqualOp, one, other))
    if is_bool(element_of(one)) and direction != "EQ":
        one, other = (node.cast(value, IntegerType(8)) for value in (one, other))
    return node.emit(COMPARISONS[direction], one, other)


def ordered_bits(node: StablehloNode, value: SSAValue) -> SSAValue:
    """Signed integers in the total order of floats of IEEE 754: -NaN, -∞, …, -0, 0, …, ∞, NaN."""
    return flipped_bits(node, node.emit(BitCastOp, value, to=IntegerType(byte_width(element_of(value)) * 8)))


def flipped_bits(node: StablehloNode, bits: SSAValue) -> SSAValue:
    """Signed integers with all bits but the sign flipped where they are negative; its own inverse."""
    width = byte_width(element_of(bits)) * 8
    flipped = node.emit(BitwiseXorOp, bits, node.splat((1 << width - 1) - 1, bits))
    is_negative = node.emit(LessOp, bits, node.splat(0, bits))
    return node.emit(WhereOp, is_negative, flipped, bits)


@stablehlo_operator("select", moves=True)
def select(node: StablehloNode) -> SSAValue:
    """Elements of one of two tensors; one truth value may choose a whole tensor."""
    return node.emit(WhereOp, *node.inputs())


@stablehlo_operator("clamp")
def clamp(node: StablehloNode) -> SSAValue:
    """Numbers limited to a range."""
    low, value, high = node.inputs()
    return node.emit(MinOp, node.emit(MaxOp, value, low), high)


@stablehlo_operator("convert")
def convert(node: StablehloNode) -> Value:
    """
    Numbers in another element type; floats are truncated to integers, which saturate, and NaN becomes 0.

    Numbers beyond a float type are infinite, or NaN if it has no infinity.
    """
    value, element = node.input(), node.element()
    if (part := part_type(element)) is not None:
        real = node.cast(value, part)
        return node.complex(real, expanded(node, node.splat(0, real), sizes_of(real)))
    if is_narrow_integer(element) and of_floats(value):
        # A conversion to a few bits wraps; one to a byte saturates.
        low, high = integer_bounds(element)  # pyright: ignore
        wide = node.cast(value, unsigned(element) if is_unsigned(element) else IntegerType(8))
        limited = node.emit(MinOp, node.emit(MaxOp, wide, node.splat(low, wide)), node.splat(high, wide))
        return node.cast(limited, element)
    return value if element_of(value) == element else node.emit(CastOp, value, to=element, saturate=False)


@stablehlo_operator("shift_left", "shift_right_arithmetic", "shift_right_logical")
def shift(node: StablehloNode) -> SSAValue:
    """Shifted bits; shifts by the width or more leave none."""
    value, by = node.inputs()
    element = element_of(value)
    signed = IntegerType(byte_width(element) * 8)
    wanted = element
    if node.kind.endswith("logical") and not is_unsigned(element):
        wanted = unsigned(element)
    elif node.kind.endswith("arithmetic") and is_unsigned(element):
        wanted = signed
    shifted = node.emit(
        BitShiftOp,
        *(with_bits(node, item, wanted) for item in (value, by)),
        direction="left" if node.kind.endswith("left") else "right",
    )
    return with_bits(node, shifted, element)


def unsigned(element: Attribute) -> IntegerType:
    """The unsigned integers of the width of an element type."""
    return IntegerType(byte_width(element) * 8, Signedness.UNSIGNED)


def with_bits(node: StablehloNode, value: SSAValue, element: Attribute) -> SSAValue:
    """The same bits as another element type of the same width."""
    return value if element_of(value) == element else node.emit(BitCastOp, value, to=element)
