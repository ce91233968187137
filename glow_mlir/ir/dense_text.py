"""
Dense attributes in text, `dense<[1.0, 2.0]> : tensor<2xf32>` and `dense<"0x0000803F…"> : tensor<100xf32>`.

Numbers between quotes are the bytes of the elements, little endian; they become bytes without a Python number for each.
`0x7F800000` as an element of a tensor of floats is its bits, which xDSL reads as a whole number.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

from glow_mlir.errors import ParseFailure
from glow_mlir.ir.locations import source_location
from glow_mlir.support.machine_memory import usable_memory

MAX_LISTED = 100
"""The number of elements up to which MLIR lists them."""


class Bits(int):
    """A hexadecimal number, which stands for the bits of a float where one is expected."""


class HexLexer(MLIRLexer):
    """A lexer that passes over strings of hexadecimal digits at once."""

    def _lex_string_literal(self, start_pos: int) -> MLIRToken:
        text = self.input.content
        if text.startswith('"0x', start_pos):
            end = text.find('"', start_pos + 1)
            if end > 0 and text.find("\\", start_pos, end) < 0 and text.find("\n", start_pos, end) < 0:
                self.pos = end + 1
                return self._form_token(MLIRTokenKind.STRING_LIT, start_pos)
        return super()._lex_string_literal(start_pos)


class DenseParser(Parser):
    """A parser of dense attributes as MLIR writes them."""

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr[Any]:
        begin = self.pos
        self.parse_punctuation("<", " in dense attribute")
        digits: Span | None = None
        items: list[Any] | None = None
        numbers: list[Any] | None = None
        shape: list[int] = []
        if self._current_token.kind == MLIRTokenKind.STRING_LIT:
            digits = self._consume_token().span
        elif (listed := self._parse_long_list()) is not None:
            numbers, shape = listed
        elif self._current_token.kind != MLIRTokenKind.GREATER:
            items, shape = self._parse_tensor_literal()
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        sizes = list(type.get_shape())
        element = type.element_type
        if digits is not None:
            data = self._bytes_of(digits, element, math.prod(sizes))
        elif items is None and numbers is None:
            if math.prod(sizes):
                self.raise_error("Expected at least one element in the dense literal, but got None")
            data = b""
        else:
            if shape and shape != sizes:
                self.raise_error(
                    f"Shape mismatch in dense literal. Expected {sizes} shape from the type, but got {shape} shape."
                )
            if numbers is None or not _fit(numbers, element):
                numbers = [self._number(item, element) for item in items or self._parse_again(begin)]
            data = _repeated(_packed(element, numbers), numbers, sizes)
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))

    def _parse_long_list(self) -> tuple[list[Any], list[int]] | None:
        """
        Read a list of many numbers, with its shape, as lists of JSON are read.

        `None` for what is short, or no such list: it is read number by number, and errors have their position.
        """
        text, begin = self.lexer.input.content, self._current_token.span.start
        end = text.find(">", begin)
        if end - begin < _LONG or _NUMBERS.fullmatch(text, begin, end) is None:
            return None
        try:
            items = json.loads(text[begin:end])
        except ValueError:
            return None
        shape: list[int] = []
        while items and isinstance(items[0], list):
            if len({len(cast("list[Any]", item)) if isinstance(item, list) else -1 for item in items}) > 1:
                return None
            shape.append(len(items))
            items = [*itertools.chain.from_iterable(items)]
        if any(isinstance(item, list) for item in items):
            return None
        self._resume_from(end)
        sizes = [*shape, len(items)]
        return items, [size // before for size, before in zip(sizes, (1, *sizes), strict=False)]

    def _parse_again(self, begin: int) -> list[Any]:
        """Read a list number by number, to tell of the one that does not fit its type."""
        resumed = self._current_token.span.start
        self._resume_from(begin)
        self.parse_punctuation("<")
        items, _ = self._parse_tensor_literal()
        self._resume_from(resumed)
        return items

    def _bytes_of(self, span: Span, element: Any, count: int) -> bytes:
        """The bytes of hexadecimal digits, repeated where they are one element."""
        text = span.input.content
        try:
            if not text.startswith("0x", span.start + 1):
                raise ValueError
            data = bytes.fromhex(text[span.start + 3 : span.end - 1])
        except ValueError:
            self.raise_error("Hex string in denseAttr is invalid", span)
        size = element.compile_time_size
        is_integer = isinstance(element, IntegerType)
        if is_integer and element.width.data == 1 and len(data) == (count + 7) // 8 and count > 8:
            return b"".join(_OF_BITS[byte] for byte in data)[:count]  # As MLIR wrote them until 2025.
        if is_integer and element.width.data < 8:
            data = data.translate(_extended(element))
        if len(data) == size:
            data = _repeated(data, [0], [count])
        if len(data) != size * count:
            length = f"{len(data) / size:g}"
            reason = f"Expected {count} elements from the type, but got {length} elements."
            self.raise_error(f"Shape mismatch in dense literal. {reason}")
        return data

    def _number(self, item: Any, element: Any) -> Any:
        """The number of an element of a literal."""
        value = item.value
        if isinstance(element, ComplexType) and isinstance(value, tuple):
            part = cast("Any", element.element_type)
            parts = cast("tuple[Any, Any]", value)
            return tuple(_float_of(each, part) if isinstance(part, AnyFloat) else int(each) for each in parts)
        if isinstance(element, AnyFloat) and isinstance(value, Bits):
            return _float_of(value, element)
        if isinstance(element, ComplexType) or (isinstance(value, float) and not math.isfinite(value)):
            self.raise_error("the number does not fit its type", item.span)
        return item.to_type(self, element)

    def _parse_optional_bool_int_or_float(self) -> Any:
        found = super()._parse_optional_bool_int_or_float()
        if found is not None and found[1].text[:2] in ("0x", "0X"):
            return Bits(int(found[0])), found[1]
        return found

    def _parse_optional_complex(self) -> Any:
        token = self._current_token
        if token.kind != MLIRTokenKind.L_PAREN:
            return None
        parts = self.parse_comma_separated_list(self.Delimiter.PAREN, self._parse_bool_int_or_float)
        kinds = {float if isinstance(value, (Bits, float)) else int for value, _ in parts}
        if len(parts) != 2 or (len(kinds) != 1 and not any(isinstance(value, Bits) for value, _ in parts)):
            self.raise_error("Complex value must be either (float, float) or (int, int)", token.span)
        return tuple(value for value, _ in parts), Span(token.span.start, parts[1][1].end, token.span.input)


_LONG = 1000
"""The number of characters from which on a list is read as a whole."""

_NUMBERS = re.compile(r"\[[-+\d.eE,\s\[\]]*\]\s*")
"""A list of numbers, or of lists."""


def _fit(numbers: list[Any], element: Any) -> bool:
    """Whether numbers of JSON fit a type of floats or of signed or signless integers as they are."""
    if isinstance(element, AnyFloat):
        return all(map(math.isfinite, numbers))
    if not isinstance(element, IntegerType) or cast("Any", element).signedness.data == Signedness.UNSIGNED:
        return False
    return all(isinstance(number, int) for number in numbers)


def _float_of(value: Any, element: AnyFloat) -> float:
    """A number, or the float of its bits; raises `ValueError` for more bits than the type has."""
    if not isinstance(value, Bits):
        return float(value)
    try:
        return next(element.iter_unpack(value.to_bytes(element.compile_time_size, "little")))
    except OverflowError as error:
        raise ValueError(f"0x{value:X} has more bits than {element}") from error


def _packed(element: Any, values: list[Any]) -> bytes:
    """The bytes of elements; raises `ValueError` for a number that is outside its type."""
    if isinstance(element, IntegerType):
        values = [element.get_normalized_value(each) for each in values]
    return element.pack(values)


def _repeated(data: bytes, items: list[Any], shape: list[int]) -> bytes:
    """The bytes of one element for each of a tensor, or of all as they are; raises `MemoryError` for too many."""
    count = math.prod(shape)
    if len(items) != 1 or count == 1:
        return data
    if len(data) * count > usable_memory():
        raise MemoryError
    return data * count


def _extended(element: Any) -> bytes:
    """Byte of an element of less than a byte → the byte that xDSL keeps: with all bits of its sign."""
    width = element.width.data
    is_signed = element.signedness.data != Signedness.UNSIGNED
    low = [byte & ((1 << width) - 1) for byte in range(256)]
    return bytes(each | (0xFF << width & 0xFF) if is_signed and each >> (width - 1) else each for each in low)


_OF_BITS = [bytes(0xFF * (byte >> bit & 1) for bit in range(8)) for byte in range(256)]
"""Byte of eight truth values → a byte for each."""


def print_long(printer: Printer, attribute: Attribute) -> bool:
    """
    Print a dense attribute of many elements as MLIR does, without a Python number for each; whether it is one.

    Different elements are bytes, `dense<"0x…"> : type`, and equal ones are written once.
    """
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return False
    dense = cast("DenseIntOrFPElementsAttr[Any]", attribute)
    element: Any = dense.type.element_type
    data = dense.data.data
    size = element.compile_time_size
    if len(data) <= MAX_LISTED * size:
        return False
    if data[size:] == data[:-size]:
        one: Any = DenseIntOrFPElementsAttr(TensorType(element, [1]), BytesAttr(data[:size]))
        one.print_without_type(printer)
    else:
        if isinstance(element, IntegerType) and element.width.data < 8:
            mask = (1 << int(cast("Any", element).width.data)) - 1
            data = data.translate(bytes(byte & mask for byte in range(256)))
        printer.print_string(f'dense<"0x{data.hex().upper()}">')
    printer.print_string(" : ")
    printer.print_attribute(dense.get_type())
    return True


def resolve_resources(module: ModuleOp, context: Context) -> None:
    """
    Let properties that are resources of the text, `dense_resource<name>`, be dense attributes, and drop the resources.

    One that a printer has left out, `ELIDED`, stays. Raises `ParseFailure` for another one without a value, or whose
    size is not that of its type.
    """
    resources = context.get_dialect("builtin").get_interface(OpAsmDialectInterface)
    found: dict[str, bytes] = {}
    for op in module.walk():
        for key, value in op.properties.items():
            if not isinstance(value, DenseResourceAttr):
                continue
            name = value.resource_handle.data
            if name.startswith(ELIDED):
                found[name] = b""
                continue
            try:
                if name not in found:
                    found[name] = bytes.fromhex(((resources and resources.lookup(name)) or "")[_PREFIX:])
                op.properties[key] = _dense(value.type, found[name])
            except ValueError as error:
                reason = f"{op.name}: the resource '{name}' is no value of {value.type}"
                raise ParseFailure(reason, file=source_location(op)) from error
    for name in found:
        cast("Any", resources)._blob_storage.pop(name, None)


ELIDED = "__elided__"
"""The name of a resource for a constant that MLIR's printer leaves out; xDSL puts a number behind repeated names."""

_PREFIX = len("0x04000000")
"""The digits before the bytes of a resource: their alignment."""


def _dense(type_: Any, data: bytes) -> DenseIntOrFPElementsAttr[Any]:
    """The attribute of these bytes; raises `ValueError` for another number of them."""
    element, count = type_.element_type, math.prod(type_.get_shape())
    if len(data) != element.compile_time_size * count:
        raise ValueError(f"{len(data)} bytes for {count} elements of {element}")
    if isinstance(element, IntegerType) and element.width.data < 8:
        data = data.translate(_extended(element))
    return DenseIntOrFPElementsAttr(type_, BytesAttr(data))
