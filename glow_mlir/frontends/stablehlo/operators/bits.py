"""Operations on the bits of numbers."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float, is_narrow, is_unsigned, number_width, numpy_dtype, ui64
from glow_mlir.dialects.glow_high.elementwise_binary import (
    AddOp,
    BitShiftOp,
    BitwiseAndOp,
    BitwiseOrOp,
    GreaterOp,
    LessOp,
    LessOrEqualOp,
    MulOp,
    SubOp,
    WhereOp,
)
from glow_mlir.dialects.glow_high.elementwise_math import IsNanOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.builder.bit_casts import BYTE, bit_cast, of_bits, unsigned_bits
from glow_mlir.frontends.builder.float_bits import next_float
from glow_mlir.frontends.stablehlo.node import StablehloNode, stablehlo_operator


def shifted(node: StablehloNode, value: SSAValue, count: int, direction: str = "right") -> SSAValue:
    """Bits shifted by a number of positions."""
    return node.emit(BitShiftOp, value, node.splat(count, value), direction=direction) if count else value


def masked(node: StablehloNode, value: SSAValue, mask: int) -> SSAValue:
    """The bits of a mask."""
    return node.emit(BitwiseAndOp, value, node.splat(mask, value))


def counted_bits(node: StablehloNode, bits: SSAValue) -> SSAValue:
    """The number of ones among the bits of unsigned integers: pairs, fours, bytes, and their sum by a product."""
    width = number_width(element_of(bits))
    pairs, fours, bytes_, ones = (int(digits * (width // BYTE), 16) for digits in ("55", "33", "0f", "01"))
    bits = node.emit(SubOp, bits, masked(node, shifted(node, bits, 1), pairs))
    bits = node.emit(AddOp, masked(node, bits, fours), masked(node, shifted(node, bits, 2), fours))
    bits = masked(node, node.emit(AddOp, bits, shifted(node, bits, 4)), bytes_)
    if width == BYTE:
        return bits
    return shifted(node, node.emit(MulOp, bits, node.splat(ones, bits)), width - BYTE)


@stablehlo_operator("popcnt")
def popcnt(node: StablehloNode) -> SSAValue:
    """The number of ones among the bits."""
    bits, _ = unsigned_bits(node, node.input())
    return of_bits(node, counted_bits(node, bits), node.element())


@stablehlo_operator("count_leading_zeros")
def count_leading_zeros(node: StablehloNode) -> SSAValue:
    """The number of zeros in front of the first one of the bits."""
    bits, width = unsigned_bits(node, node.input())
    step = 1
    while step < width:
        bits, step = node.emit(BitwiseOrOp, bits, shifted(node, bits, step)), 2 * step
    count = node.emit(SubOp, node.splat(width, bits), counted_bits(node, bits))
    return of_bits(node, count, node.element())


@stablehlo_operator("bitcast_convert")
def bitcast_convert(node: StablehloNode) -> SSAValue:
    """The same bits as numbers of another type; an axis of those in a wider number, lowest bits first, is the last."""
    return bit_cast(node, node.input(), node.element())


@stablehlo_operator("chlo.mulhi")
def mulhi(node: StablehloNode) -> SSAValue:
    """The upper half of the product of two integers."""
    one, other = node.inputs()
    element = element_of(one)
    width = number_width(element)
    if width < number_width(i64):
        wide = ui64 if is_unsigned(element) else i64
        product = node.emit(MulOp, node.cast(one, wide), node.cast(other, wide))
        return node.cast(shifted(node, product, width), element)
    high = _upper_product(node, *(unsigned_bits(node, value)[0] for value in (one, other)))
    found = of_bits(node, high, element)
    if is_unsigned(element):
        return found
    for factor, sign in ((one, other), (other, one)):
        is_negative = node.emit(LessOp, sign, node.splat(0, sign))
        found = node.emit(SubOp, found, node.emit(WhereOp, is_negative, factor, node.splat(0, factor)))
    return found


def _upper_product(node: StablehloNode, one: SSAValue, other: SSAValue) -> SSAValue:
    """The upper 64 bits of the product of two unsigned integers of 64 bits, from products of their halves."""
    half, mask = 32, (1 << 32) - 1
    (low, high), (other_low, other_high) = (
        (masked(node, value, mask), shifted(node, value, half)) for value in (one, other)
    )
    carried = shifted(node, node.emit(MulOp, low, other_low), half)
    middle = node.emit(AddOp, node.emit(MulOp, high, other_low), carried)
    lower = node.emit(AddOp, node.emit(MulOp, low, other_high), masked(node, middle, mask))
    upper = node.emit(AddOp, node.emit(MulOp, high, other_high), shifted(node, middle, half))
    return node.emit(AddOp, upper, shifted(node, lower, half))


@stablehlo_operator("chlo.next_after")
def next_after(node: StablehloNode) -> SSAValue:
    """The next float after a number in the direction of another."""
    return node.formulas.value(next_float(node.formulas, *node.inputs()))


FIELDS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
"""Name of a float type → the bits of its exponent and significand."""


@stablehlo_operator("reduce_precision")
def reduce_precision(node: StablehloNode) -> SSAValue:
    """Floats rounded to those of a type with fewer bits of exponent and significand; numbers below it become 0."""
    value = node.input()
    element = element_of(value)
    if not is_float(element) or is_narrow(element):
        raise node.unsupported(f"of {element} is not supported")
    exponent, significand = FIELDS[numpy_dtype(element).name]
    wanted_exponent, wanted = node.integer("exponent_bits"), node.integer("mantissa_bits")
    bits, width = unsigned_bits(node, value)
    if wanted < significand:
        bits = _rounded(node, bits, significand - wanted)
    if wanted_exponent < exponent:
        bits = _limited(node, bits, width, exponent, significand, wanted_exponent)
    found = of_bits(node, bits, element)
    return node.emit(WhereOp, node.emit(IsNanOp, value), value, found)


def _rounded(node: StablehloNode, bits: SSAValue, cut: int) -> SSAValue:
    """Bits whose last ones, `cut` of them, are 0: the nearest such number, halves to the even one."""
    last = 1 << cut
    is_odd = masked(node, shifted(node, bits, cut), 1)
    raised = node.emit(AddOp, bits, node.emit(AddOp, is_odd, node.splat((last >> 1) - 1, bits)))
    return masked(node, raised, (1 << number_width(element_of(bits))) - last)


def _limited(node: StablehloNode, bits: SSAValue, width: int, exponent: int, significand: int, wanted: int) -> SSAValue:
    """The bits of numbers whose exponents fit into `wanted` bits: those above are infinite, those below 0."""
    bias, narrow = ((1 << (count - 1)) - 1 for count in (exponent, wanted))
    sign, field = masked(node, bits, 1 << (width - 1)), masked(node, bits, ((1 << exponent) - 1) << significand)
    infinity = node.emit(BitwiseOrOp, sign, node.splat(((1 << exponent) - 1) << significand, bits))
    is_above = node.emit(GreaterOp, field, node.splat((bias + narrow) << significand, bits))
    is_below = node.emit(LessOrEqualOp, field, node.splat((bias - narrow) << significand, bits))
    return node.emit(WhereOp, is_above, infinity, node.emit(WhereOp, is_below, sign, bits))
