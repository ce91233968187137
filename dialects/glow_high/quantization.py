"""
Operators between numbers and quantized values: quantization, dequantization, and changes of scale.

The quantized value of a number is number / scale + zero point, rounded to an integer. Scale and zero point are part of
the element type if a tensor has a single one of each (`!quant.uniform<u8:f32, 0.02:128>`), and operands otherwise. All
operators compute in f32, or in f64 if an operand is f64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerType, TensorType, f32, f64, i32, i64
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from glow_mlir.dialects.element_types import VALUES_OF_A_BYTE, byte_width, expressed_of, is_integer, storage_of
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.glow_high.access import AccessMap, free_axes
from glow_mlir.dialects.glow_high.base import SEGMENTS
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.operand_types import FLOATS, I32, QUANTIZED, TENSOR
from glow_mlir.dialects.properties import text, text_prop
from glow_mlir.dialects.quant import (
    UniformQuantizedType,
    integer_bounds,
    is_per_axis,
    parameters_of,
    zero_point_of,
)
from glow_mlir.dialects.scalar_builder import Number, Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, rank_of, require, shape_of, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition


def _check_quantized(element: Attribute, what: str) -> None:
    fits = is_integer(storage_of(element)) and not is_per_axis(element)
    require(fits, "{} are integers of one scale, not {}", what, element)


def _computed(x: Scalar) -> Attribute:
    """The float type in which computations on a number are done."""
    return f64 if x.element == f64 else f32


def _as_code(b: ScalarBuilder, whole: Scalar, to: Attribute) -> Scalar:
    """Convert a whole number from float to a quantized type, limited to its range; NaN becomes 0."""
    storage = cast("IntegerType", storage_of(to))
    if isinstance(to, UniformQuantizedType):
        bounds = to.least.data, to.most.data
        if bounds != integer_bounds(storage):
            whole = b.clamp(whole, float(bounds[0]), float(bounds[1]))
    return b.convert(whole, storage)


@op_definition
class QuantizeOp(Elementwise):
    """
    Quantize numbers: round(`input` / scale) + zero point, ties to even, limited to the range of `to` (ONNX
    QuantizeLinear, Glow's Quantize).

    Scale and zero point are those of `to`, or, if `to` is an integer type, the operands `scale` and `zero_point`, which
    broadcast; the default of `zero_point` is 0.

    ```mlir
    %q = glow_high.quantize %x {to = !quant.uniform<u8:f32, 0.02:128>} : tensor<4x!quant.uniform<u8:f32, 0.02:128>>
    %r = glow_high.quantize %x, %scale, %zero_point {to = i8} : tensor<4xi8>
    ```
    """

    name = "glow_high.quantize"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()

    input = operand_def(FLOATS)
    scale = opt_operand_def(FLOATS)
    zero_point = opt_operand_def(QUANTIZED)
    to = prop_def(TypeAttribute)

    irdl_options = SEGMENTS

    def check_elements(self) -> Attribute:
        _check_quantized(self.to, "codes")
        static = parameters_of(self.to) is not None
        require(static == (self.scale is None), "the scale is either in the type of the codes or an operand")
        require(self.zero_point is None or self.scale is not None, "a zero point needs a scale beside it")
        if self.zero_point is not None:
            element = element_of(self.zero_point)
            require(element == self.to, f"the zero point of codes of {self.to} cannot be {element}")
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar, *parameters: Scalar) -> Scalar:
        number = b.convert(x, _computed(x))
        operands = iter(parameters)
        known = parameters_of(self.to)
        scale: Scalar | Number = b.convert(next(operands), number.element) if known is None else known[0]
        whole = b.unary("round_even", number / scale)
        zero_point = _zero_point_of(b, known, operands, number.element)
        return _as_code(b, whole if zero_point is None else whole + zero_point, self.to)


def _zero_point_of(
    b: ScalarBuilder, known: tuple[float, int] | None, operands: Iterator[Scalar], element: Attribute
) -> Scalar | Number | None:
    """The zero point converted to a type, from the parameters of a type or the next operand; `None` if it is 0."""
    if known is not None:
        return known[1] or None
    given = next(operands, None)
    return given and b.convert(given, element)


@op_definition
class DequantizeOp(Elementwise):
    """
    Dequantize values: (`input` - zero point) · scale (ONNX DequantizeLinear, Glow's Dequantize).

    Scale and zero point are those of the type of `input`, or, if that is an integer type, the operands `scale` and
    `zero_point`, which broadcast; the default of `zero_point` is 0. The difference is exact, or wraps in 32 bits.

    ```mlir
    %y = glow_high.dequantize %q : tensor<4xf32>
    %z = glow_high.dequantize %r, %scale, %zero_point : tensor<4xf32>
    ```
    """

    name = "glow_high.dequantize"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()

    input = operand_def(QUANTIZED)
    scale = opt_operand_def(FLOATS)
    zero_point = opt_operand_def(QUANTIZED)

    irdl_options = SEGMENTS

    def check_elements(self) -> Attribute:
        element = element_of(self.input)
        _check_quantized(element, "codes")
        static = parameters_of(element) is not None
        require(static == (self.scale is None), "the scale is either in the type of the codes or an operand")
        require(self.zero_point is None or self.scale is not None, "a zero point needs a scale beside it")
        if self.zero_point is not None:
            require(element_of(self.zero_point) == element, "the zero point of codes of {} is one of them", element)
        return expressed_of(element) if self.scale is None else element_of(self.scale)

    def scalar(self, b: ScalarBuilder, x: Scalar, *parameters: Scalar) -> Scalar:
        element = element_of(self.result)
        computed = f64 if element == f64 else f32
        operands = iter(parameters)
        known = parameters_of(element_of(self.input))
        scale: Scalar | Number = b.convert(next(operands), computed) if known is None else known[0]
        code = b.convert(b.wrap(x.value, storage_of(x.element)), i32)
        zero_point = _zero_point_of(b, known, operands, i32)
        number = b.convert(code if zero_point is None else code - zero_point, computed)
        return b.convert(number * scale, element)


@op_definition
class StorageCastOp(Elementwise):
    """
    The same stored integers under another quantized type, or as plain integers (MLIR's quant.scast).

    ```mlir
    %q = glow_high.storage_cast %x {to = !quant.uniform<u8:f32, 0.02:128>} : tensor<4x!quant.uniform<u8:f32, 0.02:128>>
    ```
    """

    name = "glow_high.storage_cast"
    IS_VIEW: ClassVar[bool] = True

    input = operand_def(QUANTIZED)
    to = prop_def(TypeAttribute)

    def check_elements(self) -> Attribute:
        source = element_of(self.input)
        require(
            storage_of(self.to) == storage_of(source), "{} and {} are stored in different integers", source, self.to
        )
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return x


@op_definition
class RescaleOp(Elementwise):
    """
    Rescale quantized values or accumulators: round(`input` · `multiplier` + `offset`) + zero point, ties to even,
    limited to the range of `to` (Glow's RescaleQuantized).

    `input` is converted to f32, product and sum are rounded to f32 once (fused), and the zero point is that of `to`.
    `multiplier` and `offset`, of f32, broadcast; the default of `offset` is 0.

    ```mlir
    %q = glow_high.rescale %sums, %multiplier, %bias {to = i8} : tensor<8x64xi8>
    ```
    """

    name = "glow_high.rescale"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()

    input = operand_def(QUANTIZED)
    multiplier = operand_def(FLOATS)
    offset = opt_operand_def(FLOATS)
    to = prop_def(TypeAttribute)

    def check_elements(self) -> Attribute:
        _check_quantized(element_of(self.input), "codes")
        _check_quantized(self.to, "codes")
        numbers = [value for value in (self.multiplier, self.offset) if value is not None]
        require(all(element_of(value) == f32 for value in numbers), "multiplier and offset are f32")
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar, multiplier: Scalar, *offset: Scalar) -> Scalar:
        number = b.convert(b.wrap(x.value, storage_of(x.element)), f32)
        scaled = b.fma(number, multiplier, *offset) if offset else number * multiplier
        whole = b.unary("round_even", scaled)
        zero_point = zero_point_of(self.to)
        return _as_code(b, whole + float(zero_point) if zero_point else whole, self.to)


def _rounded_once(b: ScalarBuilder, number: Scalar, multiplier: Scalar, shift: Scalar) -> Scalar:
    """The rescaled number, of i64, with halves rounded up."""
    bits = b.convert(shift, i64)
    half = b.binary("shift_left", b.constant(1, i64), bits - 1)
    return b.binary("shift_right", number * b.convert(multiplier, i64) + half, bits)


def _rounded_twice(b: ScalarBuilder, number: Scalar, multiplier: Scalar, shift: Scalar) -> Scalar:
    """The rescaled number, of i64: its first quotient by 2^31 has halves rounded up, its second one away from zero."""
    none, one = b.constant(0, i32), b.constant(1, i32)
    left, right = b.maximum(31 - shift, none), b.maximum(shift - 31, none)
    wide = b.convert(b.binary("shift_left", b.convert(number, i32), left), i64)
    product = wide * b.convert(multiplier, i64)
    first = b.convert(b.binary("shift_right", product + (1 << 30), b.constant(31, i64)), i32)
    mask = b.binary("shift_left", one, right) - one
    half = b.binary("shift_right", mask, one) + b.select(first < 0, one, none)
    rest = b.binary("and", first, mask)
    return b.convert(b.binary("shift_right", first, right) + b.select(rest > half, one, none), i64)


def _rounded_twice_right(b: ScalarBuilder, number: Scalar, multiplier: Scalar, shift: Scalar) -> Scalar:
    """
    The same, of i32, for shifts of 32 to 63, whose last five bits are then those of the second shift, less one.

    Floors of halves of floors are floors of quotients: ⌊(⌊n / 2^k⌋ + 1) / 2⌋ = ⌊(n + 2^k) / 2^(k + 1)⌋.
    """
    product = b.convert(b.convert(number, i32), i64) * b.convert(multiplier, i64)
    first = b.convert(b.binary("shift_right", product + (1 << 30), b.constant(31, i64)), i32)
    away = first + b.binary("shift_right", first, b.constant(31, i32))
    halves = b.binary("shift_right", away, b.binary("and", shift, b.constant(31, i32))) + 1
    return b.binary("shift_right", halves, b.constant(1, i32))


ONCE, TWICE_RIGHT = "once", "twice_right"

ROUNDINGS: Mapping[str, Callable[[ScalarBuilder, Scalar, Scalar, Scalar], Scalar]] = {
    ONCE: _rounded_once,
    "twice": _rounded_twice,
    TWICE_RIGHT: _rounded_twice_right,
}
"""
How a rescaled number is rounded → the function of a number of i64, its multiplier and shift; the result has as many
bits as a zero point can be added to.
"""


@op_definition
class IntegerRescaleOp(Elementwise):
    """
    Rescale quantized values or accumulators in integers: (`input` + `offset`) · `multiplier` / 2^`shift` + zero point,
    limited to the range of `to` (Glow's libjit requantization).

    Product and sum have 64 bits. `multiplier`, `shift` (clamped to 1 to 62) and `offset`, of i32, broadcast; the
    default of `offset` is 0. The zero point is that of `to`.

    `rounding` says how the quotient is rounded: `once`, with halves up; or `twice`, as MultiplyByQuantizedMultiplier
    of TensorFlow Lite does: the product by 2^31 with halves up, then the quotient by the rest of the shift with halves
    away from zero. Then sum and first quotient have 32 bits, and wrap; a shift below 31 multiplies the sum first.
    `twice_right` takes fewer instructions where all shifts are 32 to 63, of which it reads the last five bits.

    ```mlir
    %q = glow_high.integer_rescale %sums, %multiplier, %shift, %bias {to = i8} : tensor<8x64xi8>
    ```
    """

    name = "glow_high.integer_rescale"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()

    input = operand_def(QUANTIZED)
    multiplier = operand_def(I32)
    shift = operand_def(I32)
    offset = opt_operand_def(I32)
    to = prop_def(TypeAttribute)
    rounding = text_prop(ONCE)

    def check_elements(self) -> Attribute:
        _check_quantized(element_of(self.input), "codes")
        _check_quantized(self.to, "codes")
        word = text(self.rounding)
        require(word in ROUNDINGS, f"rounding must be one of {', '.join(ROUNDINGS)}, not '{word}'")
        return self.to

    def scalar(self, b: ScalarBuilder, x: Scalar, multiplier: Scalar, shift: Scalar, *offset: Scalar) -> Scalar:
        number = b.convert(b.wrap(x.value, storage_of(x.element)), i64)
        for value in offset:
            number = number + b.convert(value, i64)
        word = text(self.rounding)
        allowed = shift if word == TWICE_RIGHT else b.clamp(shift, 1, 62)
        rounded = ROUNDINGS[word](b, number, multiplier, allowed)
        whole = rounded + zero_point_of(self.to)
        storage = cast("IntegerType", storage_of(self.to))
        low, high = integer_bounds(storage)
        if isinstance(self.to, UniformQuantizedType):
            low, high = self.to.least.data, self.to.most.data
        return b.convert(b.clamp(whole, low, high), storage)


@op_definition
class LookupOp(Expressed):
    """
    The elements of `table` selected by 8-bit quantized values: a unary function as a lookup table (Glow's
    IntLookupTable).

    The table has an entry for each 8-bit value, in the order of its bits as an unsigned integer.

    ```mlir
    %y = glow_high.lookup %x, %table : tensor<1x56x56x64xui8>
    ```
    """

    name = "glow_high.lookup"
    NOTATION: ClassVar[str] = "input[...], table[input[...]] -> result[...]"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("result", "input"),)

    input = operand_def(QUANTIZED)
    table = operand_def(QUANTIZED.of_rank(1))
    result = result_def(TENSOR)

    def expression(self, *operands: Tensor) -> Tensor:
        return operands[1]

    def access_map(self) -> AccessMap:
        axes = free_axes(rank_of(self.input))
        return AccessMap((axes, ("*t",)), (axes,), max(0, len(axes) - 1))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        for value in (self.input, self.table):
            element = element_of(value)
            require(byte_width(element) == 1, "a table is of codes of 8 bits, not {}", element)
        entries = shape_of(self.table)[0]
        require(entries == VALUES_OF_A_BYTE, f"a table has {VALUES_OF_A_BYTE} entries, not {entries}")
        return (tensor(sizes_of(self.input), element_of(self.table)),)
