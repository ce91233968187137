"""
The type of quantized elements, in the notation of MLIR's `quant` dialect, which xDSL lacks.

A quantized element is an integer that represents the number (integer - zero point) · scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntAttr,
    IntegerType,
    Signedness,
    f64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

STORAGE_BITS = (8, 16, 32)
"""Widths of the integers that store quantized elements."""

Parameters = Sequence[tuple[float, int]]
"""Scale and zero point of all elements, or of each index of an axis."""


@irdl_attr_definition
class UniformQuantizedType(ParametrizedAttribute, TypeAttribute):
    """
    Elements stored as integers `storage` from `least` to `most`, which represent numbers of type `expressed`.

    There is one scale and zero point for all elements, or, if `axis` is not -1, for each index of that axis.

    ```mlir
    !quant.uniform<i8:f32, 0.02:3>
    !quant.uniform<u8<1:255>:f32:0, {0.5:128, 0.25}>
    ```
    """

    name = "quant.uniform"

    storage: IntegerType
    expressed: Attribute
    least: IntAttr
    most: IntAttr
    axis: IntAttr
    scales: ArrayAttr[FloatAttr]
    zero_points: ArrayAttr[IntAttr]

    @staticmethod
    def of(
        storage: IntegerType,
        expressed: Attribute,
        parameters: Parameters,
        axis: int | None = None,
        bounds: tuple[int, int] | None = None,
    ) -> UniformQuantizedType:
        """The type with those parameters, by default with the whole range of its integers."""
        known = tuple((float(scale), int(zero_point)) for scale, zero_point in parameters)
        return _quantized(storage, expressed, known, -1 if axis is None else axis, bounds or integer_bounds(storage))

    @property
    def is_per_axis(self) -> bool:
        """Whether each index of an axis has parameters of its own."""
        return self.axis.data >= 0

    @property
    def quantization(self) -> Parameters:
        """Scale and zero point of all elements, or of each index of `axis`."""
        pairs = zip(self.scales.data, self.zero_points.data, strict=True)
        return [(scale.value.data, zero_point.data) for scale, zero_point in pairs]

    def verify(self) -> None:
        *narrow, widest = STORAGE_BITS
        is_stored = self.storage.width.data in STORAGE_BITS
        _require(is_stored, f"quantized elements are stored in {', '.join(map(str, narrow))} or {widest} bits")
        floats = Float64Type | Float32Type | Float16Type | BFloat16Type
        _require(isinstance(self.expressed, floats), "quantized elements express floats, not {}", self.expressed)
        (lowest, highest), least, most = integer_bounds(self.storage), self.least.data, self.most.data
        inside = lowest <= least < most <= highest
        limits = least, most, lowest, highest, self.storage
        _require(inside, "the storage range {}:{} is no part of {}:{}, where {} lie", *limits)
        count = len(self.scales.data)
        _require(count == len(self.zero_points.data) > 0, "each scale has a zero point, and there is at least one")
        _require(self.axis.data >= -1, f"the axis {self.axis.data} of quantization must not be negative")
        _require(self.is_per_axis or count == 1, "several scales need an axis")
        for scale, zero_point in self.quantization:
            _require(0 < scale < math.inf, "the scale {} is no positive number", scale)
            _require(least <= zero_point <= most, "the zero point {} is outside of {}:{}", zero_point, least, most)

    def print_parameters(self, printer: Printer) -> None:
        is_unsigned = self.storage.signedness.data == Signedness.UNSIGNED
        printer.print_string(f"<{'u' if is_unsigned else 'i'}{self.storage.width.data}")
        if (bounds := (self.least.data, self.most.data)) != integer_bounds(self.storage):
            printer.print_string(f"<{bounds[0]}:{bounds[1]}>")
        printer.print_string(":")
        printer.print_attribute(self.expressed)
        if self.is_per_axis:
            printer.print_string(f":{self.axis.data}")
        listed = ", ".join(_written(scale, zero_point) for scale, zero_point in self.quantization)
        printer.print_string(f", {{{listed}}}>" if self.is_per_axis else f", {listed}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        parser.parse_punctuation("<")
        storage = _parse_storage(parser)
        bounds = None
        if parser.parse_optional_punctuation("<"):
            least = parser.parse_integer()
            parser.parse_punctuation(":")
            bounds = least, parser.parse_integer()
            parser.parse_punctuation(">")
        parser.parse_punctuation(":")
        expressed = parser.parse_type()
        axis = parser.parse_integer() if parser.parse_optional_punctuation(":") else None
        parser.parse_punctuation(",")
        if axis is None:
            parameters = [_parse_parameters(parser)]
        else:
            parameters = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_parameters(parser))
        parser.parse_punctuation(">")
        return cls.of(storage, expressed, parameters, axis, bounds).parameters


@cache
def _quantized(
    storage: IntegerType,
    expressed: Attribute,
    parameters: Sequence[tuple[float, int]],
    axis: int,
    bounds: tuple[int, int],
) -> UniformQuantizedType:
    """The type, cached: xDSL takes 0.1 ms to make it."""
    return UniformQuantizedType(
        storage,
        expressed,
        IntAttr(bounds[0]),
        IntAttr(bounds[1]),
        IntAttr(axis),
        ArrayAttr([FloatAttr(scale, f64) for scale, _ in parameters]),
        ArrayAttr([IntAttr(zero_point) for _, zero_point in parameters]),
    )


def uniform(storage: Attribute, expressed: Attribute, scale: float, zero_point: int = 0) -> UniformQuantizedType:
    """The type of quantized values stored as `storage`, with one scale and zero point."""
    integer = cast("IntegerType[int, Signedness]", storage)
    return UniformQuantizedType.of(integer, expressed, [(scale, zero_point)])


def is_per_axis(element: Attribute) -> bool:
    """Whether a type is quantized with a scale for each index of an axis."""
    return isinstance(element, UniformQuantizedType) and element.is_per_axis


def parameters_of(element: Attribute) -> tuple[float, int] | None:
    """Scale and zero point of all elements of a quantized type; `None` for any other type."""
    return element.quantization[0] if isinstance(element, UniformQuantizedType) else None


def zero_point_of(element: Attribute) -> int:
    """The zero point of all elements of a quantized type; 0 for any other type."""
    known = parameters_of(element)
    return 0 if known is None else known[1]


def integer_bounds(storage: IntegerType) -> tuple[int, int]:
    """The smallest and the largest integer of a type; signless types count as signed."""
    bits = storage.width.data
    if storage.signedness.data == Signedness.UNSIGNED:
        return 0, (1 << bits) - 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _require(condition: bool, message: str, *values: object) -> None:
    """Like `shapes.require`, which cannot be imported here."""
    if not condition:
        raise VerifyException(message.format(*values) if values else message)


def _written(scale: float, zero_point: int) -> str:
    mantissa, _, exponent = repr(scale).partition("e")
    text = mantissa if "." in mantissa else f"{mantissa}.0"
    text += f"e{exponent}" if exponent else ""
    return f"{text}:{zero_point}" if zero_point else text


def _parse_storage(parser: AttrParser) -> IntegerType:
    word = parser.parse_identifier()
    if word[:1] not in ("i", "u") or not word[1:].isdigit():
        parser.raise_error(f"'{word}' stores no quantized elements: i8, u8, …")
    return IntegerType(int(word[1:]), Signedness.UNSIGNED if word[0] == "u" else Signedness.SIGNLESS)


def _parse_parameters(parser: AttrParser) -> tuple[float, int]:
    scale = float(parser.parse_number(allow_boolean=False))
    return scale, parser.parse_integer() if parser.parse_optional_punctuation(":") else 0


QUANT = Dialect("quant", [], [UniformQuantizedType])
"""The dialect `quant`, as far as it is needed here."""
