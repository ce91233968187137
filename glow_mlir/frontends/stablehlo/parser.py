"""Parsing of programs, whose constants may be the bits of floats in hexadecimal."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.parser import AttrParser, Parser
from xdsl.utils.lexer import Span

HEXADECIMAL = "0x"
"""How bits start."""


class BitsElement(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of a constant that may be written by its bits: `0xFF800000` is -∞ in f32, and a number in i32."""

    def to_type(self, parser: AttrParser, type: object) -> object:  # pyright: ignore
        """The number of a type."""
        if isinstance(type, AnyFloat):
            return _of_bits(parser, self.value, self.span.text, type)
        if isinstance(type, ComplexType) and isinstance(self.value, tuple):
            texts = self.span.text.strip("()").split(",")
            element = type.element_type
            if isinstance(element, AnyFloat):
                parts = zip(self.value, texts, strict=True)
                return tuple(_of_bits(parser, part, text.strip(), element) for part, text in parts)
        return super().to_type(parser, type)  # pyright: ignore


def _of_bits(parser: AttrParser, value: object, text: str, type_: AnyFloat) -> float:
    """A number of a float type; one that is written in hexadecimal is its bits."""
    if not text.lower().startswith(HEXADECIMAL):
        return float(cast("float", value))
    width = type_.compile_time_size
    if not isinstance(value, int) or value >= 1 << (8 * width):
        parser.raise_error(f"{text} has more bits than {type_}")
    return next(iter(type_.iter_unpack(value.to_bytes(width, "little"))))


class ProgramParser(Parser):
    """A parser of programs."""

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:  # pyright: ignore
        found = super()._parse_tensor_literal_element()
        if HEXADECIMAL not in found.span.text.lower():
            return found
        return BitsElement(False, found.value, found.span)

    def _parse_optional_complex(self) -> tuple[tuple[float, float], Span] | None:  # pyright: ignore
        # Its parts may be of different kinds: bits and a decimal number.
        if not self.parse_optional_punctuation("("):
            return None
        source, start = self._current_token.span.input, self._current_token.span.start - 1
        real, _ = self._parse_bool_int_or_float()
        self.parse_punctuation(",")
        imaginary, _ = self._parse_bool_int_or_float()
        end = self._current_token.span.end
        self.parse_punctuation(")")
        return (real, imaginary), Span(start, end, source)
