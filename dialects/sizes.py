"""
Sizes of tensors that are known at run time only: bounded symbols, and sums of products of them and of quotients.

A size is an `int`, or a `SymbolicSize` such as `batch * 4 + 1`. `floordiv` is that of MLIR's affine expressions: a
division by a positive number that rounds down. A type prints such sizes as `?`. Its encoding `#glow.sizes` lists them
in order, with the bounds of each symbol:

```mlir
tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
tensor<?x?xf32, #glow.sizes<[batch * 4, batch + length + 1], batch = 1 to 64, length = 0 to 512>>
tensor<?xf32, #glow.sizes<["past tokens"], "past tokens" = 0 to 512>>
tensor<?x?xf32, #glow.sizes<[(height + 1) floordiv 2, (width floordiv 2) * 3], height = 1 to 512, width = 1 to 512>>
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.symbols import NUMBERS_INSTEAD, Size, Sizes, Symbol, SymbolicSize, symbols_of

HINT = NUMBERS_INSTEAD
"""The hint of errors about sizes that are known at run time only."""

HINT_OF_DATA = "data decides the size: mask elements with Where instead of selecting them"
"""The same hint if no dimension has bounds, so that all such sizes come from data."""


def fitting_hint(hint: str, has_bounds: bool) -> str:
    """The hint, or the one that applies to a model in which no dimension has bounds."""
    return HINT_OF_DATA if HINT in hint and not has_bounds else hint


class RunTimeSizeError(UnsupportedError, VerifyException):
    """A number is required, but `size` is known at run time only."""

    def __init__(self, size: object) -> None:
        self.size = size
        super().__init__(f"the size {size} is known at run time only", hint=HINT)


class LargeDividendError(UnsupportedError, VerifyException):
    """The dividend of a quotient in a size may exceed 64 bits."""

    def __init__(self, size: object) -> None:
        super().__init__(f"the size {size} is of numbers that 64 bits have no room for", hint=HINT)


def static(sizes: Sizes) -> tuple[int, ...]:
    """The sizes as numbers; raises `RunTimeSizeError` for one that is known at run time only."""
    for size in sizes:
        if not isinstance(size, int):
            raise RunTimeSizeError(size)
    return cast("tuple[int, ...]", sizes)


def smallest(size: Size) -> int:
    """The smallest number that a size may be."""
    return size if isinstance(size, int) else size.least


def largest(size: Size) -> int:
    """The largest number that a size may be."""
    return size if isinstance(size, int) else size.most


def shape_at(sizes: Sizes, values: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes as numbers, where symbols have these values; raises `RunTimeSizeError` for one that has none."""
    for size in sizes:
        if not isinstance(size, int) and not all(symbol.name in values for symbol in size.symbols):
            raise RunTimeSizeError(size)
    return tuple(size if isinstance(size, int) else size.at(values) for size in sizes)


@irdl_attr_definition
class SizesAttr(Data[Sizes]):
    """
    Sizes, some of which are known at run time only, with the bounds of each symbol.

    As the encoding of a type, it lists the size of each `?` in order; as a property, the sizes of all axes.
    """

    name = "glow.sizes"

    def verify(self) -> None:
        known: dict[str, Symbol] = {}
        for symbol in symbols_of(self.data):
            if not 0 <= symbol.least <= symbol.most:
                raise VerifyException(f"the symbol {symbol.name} cannot be in {symbol.least} to {symbol.most}")
            if known.setdefault(symbol.name, symbol) != symbol:
                raise VerifyException(f"the symbol {symbol.name} has two ranges")
        for size in self.data:
            if not isinstance(size, int) and size.largest_dividend >= 1 << 63:
                raise LargeDividendError(size)

    def print_parameter(self, printer: Printer) -> None:
        sizes = ", ".join(str(size) if isinstance(size, int) else size.spelled(_spelled) for size in self.data)
        symbols = symbols_of(self.data)
        ranges = "".join(f", {_spelled(symbol.name)} = {symbol.least} to {symbol.most}" for symbol in symbols)
        printer.print_string(f"<[{sizes}]{ranges}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sizes:
        parser.parse_punctuation("<")
        sums = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_sum(parser))
        symbols: dict[str, Symbol] = {}
        while parser.parse_optional_punctuation(","):
            symbol = _parse_range(parser)
            if symbols.setdefault(symbol.name, symbol) != symbol:
                parser.raise_error(f"the symbol {symbol.name} has two ranges")
        parser.parse_punctuation(">")
        return tuple(size(symbols) for size in sums)


def _spelled(name: str) -> str:
    """The name of a symbol: as it is, or in quotes where it is no identifier."""
    return name if re.fullmatch(r"[A-Za-z_][\w$.]*", name, re.ASCII) else json.dumps(name, ensure_ascii=False)


def _parse_name(parser: AttrParser) -> str | None:
    """Parse the name of a symbol, if there is one."""
    name = parser.parse_optional_identifier()
    return parser.parse_optional_str_literal() if name is None else name


Written = Callable[[Mapping[str, Symbol]], Size]
"""A parsed size, as a function of the symbols, whose ranges follow in the text."""


def _parse_sum(parser: AttrParser) -> Written:
    """Parse `batch * 4 + length - 1`."""
    sign: int | None = -1 if parser.parse_optional_punctuation("-") else 1
    terms: list[tuple[int, Written]] = []
    while sign is not None:
        terms.append((sign, _parse_product(parser)))
        sign = 1 if parser.parse_optional_punctuation("+") else -1 if parser.parse_optional_punctuation("-") else None

    def total(symbols: Mapping[str, Symbol]) -> Size:
        found: Size = 0
        for sign, term in terms:
            found = term(symbols) * sign + found
        return found

    return total


def _parse_product(parser: AttrParser) -> Written:
    """Parse `batch * 4`, or `height floordiv 2 * 4`, from the left."""
    found = _parse_factor(parser)
    while True:
        if parser.parse_optional_punctuation("*"):
            found = partial(_times, found, _parse_factor(parser))
        elif parser.parse_optional_keyword("floordiv"):
            divisor = parser.parse_integer(allow_negative=False)
            if divisor == 0:
                parser.raise_error("a size is divided by a number above 0")
            found = partial(_over, found, divisor)
        else:
            return found


def _times(left: Written, right: Written, symbols: Mapping[str, Symbol]) -> Size:
    return left(symbols) * right(symbols)


def _over(dividend: Written, divisor: int, symbols: Mapping[str, Symbol]) -> Size:
    return dividend(symbols) // divisor


def _parse_factor(parser: AttrParser) -> Written:
    """Parse a symbol, a number, or a sum in parentheses."""
    if parser.parse_optional_punctuation("("):
        within = _parse_sum(parser)
        parser.parse_punctuation(")")
        return within
    if (name := _parse_name(parser)) is None:
        number = parser.parse_integer(allow_negative=False)
        return lambda _: number

    def size(symbols: Mapping[str, Symbol]) -> Size:
        if name not in symbols:
            parser.raise_error(f"the symbol {name} has no range: {name} = 1 to 64")
        return SymbolicSize.of(symbols[name])

    return size


def _parse_range(parser: AttrParser) -> Symbol:
    """Parse `batch = 1 to 64`."""
    name = _parse_name(parser)
    if name is None:
        parser.raise_error("expected the name of a symbol")
    parser.parse_punctuation("=")
    least = parser.parse_integer()
    parser.parse_keyword("to")
    return Symbol(name, least, parser.parse_integer())
