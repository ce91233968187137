"""Elementwise operators of two and three operands: arithmetic, comparison, logic, selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, traits_def
from xdsl.traits import Commutative

from glow_mlir.dialects.element_types import byte_width, is_float, is_unsigned
from glow_mlir.dialects.glow_high.base import SEGMENTS
from glow_mlir.dialects.glow_high.elementwise import Binary, Elementwise
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.ranges import ANY, NEGATIVE, POSITIVE, Range, joined
from glow_mlir.dialects.operand_types import BOOLS, INTEGERS, NUMBERS, SCALARS
from glow_mlir.dialects.properties import flag, flag_prop, text, text_prop
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, require
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class AddOp(Binary):
    """Sum (ONNX Add); wraps for integers."""

    name = "glow_high.add"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x + y

    def result_range(self, operands: Sequence[Range]) -> Range:
        return joined(operands).sign() if is_float(element_of(self.result)) else ANY


@op_definition
class SubOp(Binary):
    """Difference (ONNX Sub); wraps for integers."""

    name = "glow_high.sub"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x - y


@op_definition
class MulOp(Binary):
    """Product (ONNX Mul); wraps for integers."""

    name = "glow_high.mul"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x * y

    def result_range(self, operands: Sequence[Range]) -> Range:
        if not is_float(element_of(self.result)):
            return ANY
        left, right = (operand.sign() for operand in operands)
        alike = self.left is self.right or (left == right and left in (POSITIVE, NEGATIVE))
        return POSITIVE if alike else ANY


@op_definition
class DivOp(Binary):
    """Quotient (ONNX Div); for integers truncated towards zero, and 0 for a divisor of zero."""

    name = "glow_high.div"

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x / y


@op_definition
class ModOp(Binary):
    """
    Remainder (ONNX Mod) with the sign of the divisor, or with `fmod` that of the dividend; also for a zero.

    For integers, a divisor of zero gives 0. For floats, the result is exact with `fmod`; without it, the divisor may be
    added to the exact remainder, and the sum is rounded once.
    """

    name = "glow_high.mod"
    fmod = flag_prop()

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        remainder = x % y
        if flag(self.fmod) or is_unsigned(x.element):
            return remainder
        wrong_sign = (remainder < 0) ^ (y < 0)
        signed = b.select(wrong_sign & remainder.differs(0), remainder + y, remainder)
        if not is_float(x.element):
            return signed
        zero = b.select(y < 0.0, b.constant(-0.0, x.element), 0.0)
        return b.select(signed.equals(0.0), zero, signed)

    def is_discontinuous(self) -> bool:
        return True


@op_definition
class PowOp(Binary):
    """x to the power y (ONNX Pow), computed and returned in the type of x."""

    name = "glow_high.pow"

    def check_elements(self) -> Attribute:
        return element_of(self.left)

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        if is_float(y.element) and not is_float(x.element):
            return b.convert(b.power(b.convert(x, y.element), y), x.element)
        return b.power(x, b.convert(y, x.element))


@op_definition
class MaxOp(Binary):
    """The larger of two (ONNX Max); NaN if either is."""

    name = "glow_high.max"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.maximum(x, y)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return Range(max(operand.low for operand in operands), max(operand.high for operand in operands))


@op_definition
class MinOp(Binary):
    """The smaller of two (ONNX Min); NaN if either is."""

    name = "glow_high.min"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return b.minimum(x, y)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return Range(min(operand.low for operand in operands), min(operand.high for operand in operands))


class _Logical(Binary):
    """An operator on truth values."""

    left = operand_def(BOOLS)
    right = operand_def(BOOLS)


class _Bitwise(Binary):
    """An operator on the bits of integers."""

    left = operand_def(INTEGERS)
    right = operand_def(INTEGERS)


class _Comparison(Binary):
    """A comparison, with a truth value as result."""

    TRUTH: ClassVar[bool] = True
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()


@op_definition
class EqualOp(_Comparison):
    """x = y (ONNX Equal)."""

    name = "glow_high.equal"

    traits = traits_def(Commutative())

    left = operand_def(SCALARS)
    right = operand_def(SCALARS)

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x.equals(y)


@op_definition
class LessOp(_Comparison):
    """x < y (ONNX Less)."""

    name = "glow_high.less"

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x < y


@op_definition
class LessOrEqualOp(_Comparison):
    """x ≤ y (ONNX LessOrEqual)."""

    name = "glow_high.less_or_equal"

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x <= y


@op_definition
class GreaterOp(_Comparison):
    """x > y (ONNX Greater)."""

    name = "glow_high.greater"

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x > y


@op_definition
class GreaterOrEqualOp(_Comparison):
    """x ≥ y (ONNX GreaterOrEqual)."""

    name = "glow_high.greater_or_equal"

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x >= y


@op_definition
class AndOp(_Logical):
    """Logical and (ONNX And)."""

    name = "glow_high.and"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


@op_definition
class OrOp(_Logical):
    """Logical or (ONNX Or)."""

    name = "glow_high.or"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


@op_definition
class XorOp(_Logical):
    """Logical exclusive or (ONNX Xor)."""

    name = "glow_high.xor"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x ^ y


@op_definition
class BitwiseAndOp(_Bitwise):
    """And of all bits (ONNX BitwiseAnd)."""

    name = "glow_high.bitwise_and"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x & y


@op_definition
class BitwiseOrOp(_Bitwise):
    """Or of all bits (ONNX BitwiseOr)."""

    name = "glow_high.bitwise_or"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x | y


@op_definition
class BitwiseXorOp(_Bitwise):
    """Exclusive or of all bits (ONNX BitwiseXor)."""

    name = "glow_high.bitwise_xor"

    traits = traits_def(Commutative())

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        return x ^ y


@op_definition
class BitShiftOp(_Bitwise):
    """
    x shifted by y bits, `direction` `left` or `right` (ONNX BitShift).

    The right shift of a signed integer copies its sign. Shifts by the width or more give 0, or -1 for a right shift of
    a negative integer.
    """

    name = "glow_high.bit_shift"
    direction = text_prop("left")

    def check_elements(self) -> Attribute:
        direction = text(self.direction)
        require(direction in ("left", "right"), f"direction must be 'left' or 'right', not '{direction}'")
        return Binary.check_elements(self)

    def scalar(self, b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
        width, direction = byte_width(x.element) * 8, text(self.direction)
        within = y < width if is_unsigned(y.element) else (y < width) & (y >= 0)
        shifted = b.binary(f"shift_{direction}", x, b.select(within, y, width - 1))
        if direction == "right" and not is_unsigned(x.element):
            return shifted
        return b.select(within, shifted, 0)


@op_definition
class WhereOp(Elementwise):
    """`yes` where `condition` holds, else `no` (ONNX Where)."""

    name = "glow_high.where"

    condition = operand_def(BOOLS)
    yes = operand_def(SCALARS)
    no = operand_def(SCALARS)

    def check_elements(self) -> Attribute:
        require(element_of(self.yes) == element_of(self.no), "both branches must have one element type")
        return element_of(self.yes)

    def scalar(self, b: ScalarBuilder, condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
        return b.select(condition, yes, no)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return joined(operands[1:])


@op_definition
class ClipOp(Elementwise):
    """x limited to [`low`, `high`]; either limit may be absent (ONNX Clip)."""

    name = "glow_high.clip"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    input = operand_def(NUMBERS)
    low = opt_operand_def(NUMBERS)
    high = opt_operand_def(NUMBERS)

    irdl_options = SEGMENTS

    def scalar(self, b: ScalarBuilder, x: Scalar, *limits: Scalar) -> Scalar:
        remaining = list(limits)
        if self.low is not None:
            x = b.maximum(x, remaining.pop(0))
        return b.minimum(x, remaining.pop(0)) if self.high is not None else x
