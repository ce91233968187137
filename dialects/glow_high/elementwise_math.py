"""Elementwise functions of one operand: arithmetic, rounding, exponential, trigonometric, logical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import operand_def, prop_def

from glow_mlir.dialects.element_types import (
    byte_width,
    is_element,
    is_float,
    is_narrow,
    is_narrow_float,
    is_unsigned,
    number_width,
)
from glow_mlir.dialects.glow_high.elementwise import Unary
from glow_mlir.dialects.glow_high.ranges import ANY, POSITIVE, Range
from glow_mlir.dialects.narrow_floats import ROUND_MODES, is_power_of_two, narrowed
from glow_mlir.dialects.operand_types import BOOLS, ELEMENTS, FLOATS, INTEGERS
from glow_mlir.dialects.properties import flag, flag_prop, text, text_prop
from glow_mlir.dialects.scalar_builder import FUNCTIONS, Scalar, ScalarBuilder
from glow_mlir.dialects.scalar_function import ScalarFunction
from glow_mlir.dialects.shapes import element_of, require
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class AbsOp(Unary):
    """Absolute value (ONNX Abs); the smallest signed integer is unchanged."""

    name = "glow_high.abs"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        if is_float(x.element):
            return b.unary("abs", x)
        return x if is_unsigned(x.element) else b.select(x < 0, -x, x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE if is_float(element_of(self.results[0])) else ANY


@op_definition
class NegOp(Unary):
    """Negation (ONNX Neg); wraps for integers."""

    name = "glow_high.neg"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return -x


@op_definition
class SignOp(Unary):
    """-1, 0 or 1 (ONNX Sign); NaN stays NaN."""

    name = "glow_high.sign"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        positive = b.select(x > 0, 1, b.select(x.equals(0), 0, x))
        return positive if is_unsigned(x.element) else b.select(x < 0, -1, positive)

    def is_discontinuous(self) -> bool:
        return True


@op_definition
class ReciprocalOp(Unary):
    """1 / x (ONNX Reciprocal)."""

    name = "glow_high.reciprocal"

    input = operand_def(FLOATS)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return 1.0 / x


class FloatFunction(Unary):
    """A function of the table of scalar functions."""

    FUNCTION: ClassVar[ScalarFunction]

    input = operand_def(FLOATS)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.unary(self.FUNCTION.name, x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return Range(*self.FUNCTION.bounds)

    def is_discontinuous(self) -> bool:
        return self.FUNCTION.is_step


def _operator(function: ScalarFunction) -> type[FloatFunction]:
    """The operator of a function."""
    name = function.operator or function.name
    meaning = f"{function.meaning[:-1]} (ONNX {function.onnx})." if function.onnx else function.meaning
    constant = {"FUNCTION": function, "__annotations__": {"FUNCTION": ClassVar[ScalarFunction]}}
    members = {"__module__": __name__, "__doc__": meaning, "name": f"glow_high.{name}", **constant}
    return op_definition(type(f"{name.capitalize()}Op", (FloatFunction,), members))


FLOAT_FUNCTIONS: Mapping[str, type[FloatFunction]] = {
    function.name: _operator(function) for function in FUNCTIONS.values() if function.operator != ""
}
"""Word → the operator of the function, which is also a member of this module, such as `ErfOp`."""

globals().update({operator.__name__: operator for operator in FLOAT_FUNCTIONS.values()})


def __getattr__(name: str) -> type[FloatFunction]:
    raise AttributeError(f"there is no operator {name}")


@op_definition
class NotOp(Unary):
    """Logical negation (ONNX Not)."""

    name = "glow_high.not"

    input = operand_def(BOOLS)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.logical_not(x)


@op_definition
class BitwiseNotOp(Unary):
    """All bits flipped (ONNX BitwiseNot)."""

    name = "glow_high.bitwise_not"

    input = operand_def(INTEGERS)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.logical_not(x)


@op_definition
class IsNanOp(Unary):
    """Whether x is NaN (ONNX IsNaN)."""

    name = "glow_high.is_nan"
    TRUTH: ClassVar[bool] = True

    input = operand_def(FLOATS)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return x.differs(x)


@op_definition
class IsInfOp(Unary):
    """Whether x is an infinity (ONNX IsInf); `positive` and `negative` enable either sign."""

    name = "glow_high.is_inf"
    TRUTH: ClassVar[bool] = True

    input = operand_def(FLOATS)
    positive = flag_prop(True)
    negative = flag_prop(True)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        up, down = flag(self.positive), flag(self.negative)
        if up and down:
            return b.unary("abs", x).equals(float("inf"))
        if up or down:
            return x.equals(float("inf") if up else float("-inf"))
        return x < float("-inf")


@op_definition
class CastOp(Unary):
    """
    Conversion to the element type `to` (ONNX Cast).

    Floats to integers truncate and saturate, and NaN becomes 0; integers wrap; every number but zero is true. To floats
    of 8 bits or less, a number is rounded once, to the nearest, ties to even. A number out of range becomes the nearest
    limit, or, without `saturate`, an infinity, or NaN if the type has no infinity. To `f8E8M0FNU`, `round_mode` is the
    direction: "nearest", "up" or "down". To integers of 2 and 4 bits, a float is converted to i32 first, which wraps.

    ```mlir
    %y = glow_high.cast %x {to = f8E4M3FN, saturate = false} : tensor<4xf8E4M3FN>
    ```
    """

    name = "glow_high.cast"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()

    input = operand_def(ELEMENTS)
    to = prop_def(TypeAttribute)
    saturate = flag_prop(True)
    round_mode = text_prop("nearest")

    def check_elements(self) -> Attribute:
        require(is_element(self.to), "there is no conversion to {}", self.to)
        mode, is_power = text(self.round_mode), is_narrow_float(self.to) and is_power_of_two(self.to)
        require(mode in ROUND_MODES, f"round_mode is one of {', '.join(ROUND_MODES)}, not '{mode}'")
        require(mode == "nearest" or is_power, "a conversion to {} rounds to the nearest, not {}", self.to, mode)
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        if is_narrow_float(self.to) and x.element != self.to:
            return narrowed(b, x, self.to, flag(self.saturate), text(self.round_mode))
        return b.convert(x, self.to)

    def result_range(self, operands: Sequence[Range]) -> Range:
        # Signs stay where a float is on either side; integers among themselves wrap.
        source, target = element_of(self.input), element_of(self.result)
        if is_narrow(source) or is_narrow(target):
            return ANY
        return operands[0].sign() if is_float(source) or is_float(target) else ANY


@op_definition
class BitCastOp(Unary):
    """
    The same bits as another element type `to` of the same width (ONNX BitCast).

    ```mlir
    %y = glow_high.bit_cast %x {to = i32} : tensor<4x8xi32>
    ```
    """

    name = "glow_high.bit_cast"

    input = operand_def(ELEMENTS)
    to = prop_def(TypeAttribute)

    def check_elements(self) -> Attribute:
        source = element_of(self.input)
        width = number_width if is_narrow(source) or is_narrow(self.to) else byte_width
        require(width(source) == width(self.to), f"{source} and {self.to} differ in width")
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.bitcast(x, self.to)
