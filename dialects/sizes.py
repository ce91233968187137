"""
Sizes of tensors that are known at run time only: bounded symbols, and sums and multiples of them.

A size is an `int`, or a `SymbolicSize` such as `batch * 4 + 1`. A type with such sizes has `?` in their places, and as
its encoding `#glow.sizes`, which tells them in order, and between which bounds each symbol lies:

```mlir
tensor<?x4xf32, #glow.sizes<[batch], batch = 1 to 64>>
tensor<?x?xf32, #glow.sizes<[batch * 4, batch + length + 1], batch = 1 to 64, length = 0 to 512>>
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from glow_mlir.errors import UnsupportedError


@dataclass(frozen=True, order=True)
class Symbol:
    """A number from `least` to `most` that is known at run time; those of one name are the same number."""

    name: str
    least: int
    most: int


@dataclass(frozen=True)
class SymbolicSize:
    """The sum of `offset` and of symbols, each times a positive number; symbols in the order of their names."""

    terms: tuple[tuple[Symbol, int], ...]
    offset: int = 0

    @staticmethod
    def of(symbol: Symbol) -> SymbolicSize:
        """The symbol itself as a size."""
        return SymbolicSize(((symbol, 1),))

    def __add__(self, other: Size) -> SymbolicSize:
        if isinstance(other, int):
            return SymbolicSize(self.terms, self.offset + other)
        factors = dict(self.terms)
        for symbol, factor in other.terms:
            factors[symbol] = factors.get(symbol, 0) + factor
        return SymbolicSize(tuple(sorted(factors.items())), self.offset + other.offset)

    __radd__ = __add__

    def __mul__(self, factor: int) -> SymbolicSize:
        return SymbolicSize(tuple((symbol, times * factor) for symbol, times in self.terms), self.offset * factor)

    __rmul__ = __mul__

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols, by name."""
        return tuple(symbol for symbol, _ in self.terms)

    @property
    def least(self) -> int:
        """The smallest that it may be."""
        return self.offset + sum(symbol.least * factor for symbol, factor in self.terms)

    @property
    def most(self) -> int:
        """The largest that it may be."""
        return self.offset + sum(symbol.most * factor for symbol, factor in self.terms)

    def at(self, values: Mapping[str, int]) -> int:
        """The number that it is where symbols have these values."""
        return self.offset + sum(values[symbol.name] * factor for symbol, factor in self.terms)

    def __str__(self) -> str:
        parts = [symbol.name if factor == 1 else f"{symbol.name} * {factor}" for symbol, factor in self.terms]
        return " + ".join([*parts, *([str(self.offset)] if self.offset else [])])


Size = int | SymbolicSize
"""The number of elements along an axis."""

Sizes = tuple[Size, ...]
"""The sizes of all axes."""


class RunTimeSizeError(UnsupportedError, VerifyException):
    """What needs a number is asked for a size that is known at run time only: `size`."""

    def __init__(self, size: object) -> None:
        self.size = size
        super().__init__(f"the size {size} is known at run time only", hint="give dimensions: numbers for all sizes")


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


def bound_symbols(sizes: Sequence[Size], shape: Sequence[int], values: dict[str, int]) -> str:
    """
    Find out what symbols are where an array has that shape; `values` has those that are known, and gets the others.

    Returns what is wrong, or nothing. A size of several symbols tells one of them where the others are known before.
    """
    for axis, (size, actual) in enumerate(zip(sizes, shape, strict=True)):
        if isinstance(size, int):
            if size != actual:
                return f"axis {axis} is {actual} long, not {size}"
            continue
        unknown = [(symbol, factor) for symbol, factor in size.terms if symbol.name not in values]
        if len(unknown) == 1:
            (symbol, factor), known = unknown[0], {**values, unknown[0][0].name: 0}
            values[symbol.name] = (actual - size.at(known)) // factor
        if len(unknown) > 1 or size.at(values) != actual:
            told = ", ".join(f"{symbol.name} = {values.get(symbol.name, 'unknown')}" for symbol in size.symbols)
            return f"axis {axis} is {actual} long, not {size} with {told}"
        for symbol in size.symbols:
            if not symbol.least <= values[symbol.name] <= symbol.most:
                return f"{symbol.name} = {values[symbol.name]} is not in {symbol.least} to {symbol.most}"
    return ""


@irdl_attr_definition
class SizesAttr(Data[tuple[SymbolicSize, ...]]):
    """The encoding of a type with sizes that are known at run time only: what each `?` stands for, in order."""

    name = "glow.sizes"

    def verify(self) -> None:
        known: dict[str, Symbol] = {}
        for symbol in (symbol for size in self.data for symbol in size.symbols):
            if not 0 <= symbol.least <= symbol.most:
                raise VerifyException(f"the symbol {symbol.name} cannot be in {symbol.least} to {symbol.most}")
            if known.setdefault(symbol.name, symbol) != symbol:
                raise VerifyException(f"the symbol {symbol.name} has two ranges")

    def print_parameter(self, printer: Printer) -> None:
        symbols = sorted({symbol for size in self.data for symbol in size.symbols})
        sizes = ", ".join(map(str, self.data))
        ranges = "".join(f", {symbol.name} = {symbol.least} to {symbol.most}" for symbol in symbols)
        printer.print_string(f"<[{sizes}]{ranges}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[SymbolicSize, ...]:
        parser.parse_punctuation("<")
        sums = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_sum(parser))
        symbols: dict[str, Symbol] = {}
        while parser.parse_optional_punctuation(","):
            symbol = _parse_range(parser)
            if symbols.setdefault(symbol.name, symbol) != symbol:
                parser.raise_error(f"the symbol {symbol.name} has two ranges")
        parser.parse_punctuation(">")
        return tuple(_resolved(parser, terms, symbols) for terms in sums)


def _parse_sum(parser: AttrParser) -> list[tuple[str, int]]:
    """Parse `batch * 4 + 1` as pairs of a name, empty for a number, and a factor."""
    terms: list[tuple[str, int]] = []
    while True:
        name = parser.parse_optional_identifier()
        if name is None:
            terms.append(("", parser.parse_integer(allow_negative=False)))
        else:
            factor = parser.parse_integer(allow_negative=False) if parser.parse_optional_characters("*") else 1
            terms.append((name, factor))
        if parser.parse_optional_characters("+") is None:
            return terms


def _parse_range(parser: AttrParser) -> Symbol:
    """Parse `batch = 1 to 64`."""
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    least = parser.parse_integer()
    parser.parse_keyword("to")
    return Symbol(name, least, parser.parse_integer())


def _resolved(parser: AttrParser, terms: Sequence[tuple[str, int]], symbols: Mapping[str, Symbol]) -> SymbolicSize:
    total = SymbolicSize(())
    for name, factor in terms:
        if not name:
            total = total + factor
        elif name in symbols:
            total = total + SymbolicSize.of(symbols[name]) * factor
        else:
            parser.raise_error(f"the symbol {name} has no range: {name} = 1 to 64")
    return total
