"""
Bounded symbols, and sizes that are sums of products of them and of quotients: what callers and the compiler know of
sizes.

A size is an `int`, or a `SymbolicSize` such as `batch * length * 4 + 1` or `(height + 1) floordiv 2`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dataclass import dataclass

if TYPE_CHECKING:
    from fractions import Fraction

NUMBERS_INSTEAD = "give dimensions numbers instead of bounds"
"""The hint for code that does not support sizes known only at run time."""

MAX_PARTS = 1024
"""
The maximum number of symbols and quotients in a size, because sizes that are scaled up and down by successive layers
double in length with each.
"""


@dataclass(frozen=True, order=True)
class Symbol:
    """A number from `least` to `most`, at least 0, that is known at run time; symbols of one name are equal."""

    name: str
    least: int
    most: int


@dataclass(frozen=True)
class Quotient:
    """
    A size divided by a number above 1, rounded down: `(height + 1) floordiv 2`; made by `SymbolicSize.__floordiv__`.

    The numbers in the dividend are at least 0 and below the divisor: a quotient is never negative.
    """

    dividend: SymbolicSize
    divisor: int

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.dividend, self.divisor))

    @cached_property
    def parts(self) -> int:
        """The number of symbols and quotients in it."""
        return 1 + self.dividend.parts

    @property
    def least(self) -> int:
        """A lower bound."""
        return self.dividend.least // self.divisor

    @property
    def most(self) -> int:
        """An upper bound."""
        return self.dividend.most // self.divisor

    def at(self, values: Mapping[str, int]) -> int:
        """The value for these values of symbols."""
        return self.dividend.at(values) // self.divisor

    def spelled(self, spell: Callable[[str], str]) -> str:
        """The quotient as text; `spell` formats names."""
        dividend = self.dividend.spelled(spell)
        return f"{dividend if self.dividend.is_symbol else f'({dividend})'} floordiv {self.divisor}"


Factor = Symbol | Quotient
"""A factor of a product in a size."""

Product = tuple[Factor, ...]
"""A product of symbols, in the order of their names, and of quotients behind them."""


def _sort_key(factor: Factor) -> tuple[Any, ...]:
    """The sort key of a factor in a product."""
    if isinstance(factor, Symbol):
        return (0, factor.name, factor.least, factor.most)
    return (1, factor.divisor, factor.dividend.offset, *map(_sort_key_of_term, factor.dividend.terms))


def _sort_key_of_term(term: tuple[Product, int]) -> tuple[Any, ...]:
    """The sort key of a product in a sum."""
    return (tuple(map(_sort_key, term[0])), term[1])


def _ordered(factors: Iterable[Factor]) -> Product:
    return tuple(sorted(factors, key=_sort_key))


@dataclass(frozen=True, repr=False)
class SymbolicSize:
    """The sum of `offset` and of products of factors, each times a number other than 0; in the order of their names."""

    terms: tuple[tuple[Product, int], ...]
    offset: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.offset))

    @cached_property
    def parts(self) -> int:
        """The number of symbols and quotients in it, including those inside quotients."""
        return sum(1 if isinstance(factor, Symbol) else factor.parts for product, _ in self.terms for factor in product)

    @staticmethod
    def of(symbol: Symbol) -> SymbolicSize:
        """The symbol itself as a size."""
        return SymbolicSize((((symbol,), 1),))

    def __add__(self, other: Size) -> Size:
        if isinstance(other, int):
            return SymbolicSize(self.terms, self.offset + other)
        factors = Counter(dict(self.terms))
        for product, factor in other.terms:
            factors[product] += factor
        return _size(factors, self.offset + other.offset)

    __radd__ = __add__

    def __neg__(self) -> SymbolicSize:
        return SymbolicSize(tuple((product, -factor) for product, factor in self.terms), -self.offset)

    def __sub__(self, other: Size) -> Size:
        return self + (-other)

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return _size({product: times * other for product, times in self.terms}, self.offset * other)
        factors: Counter[Product] = Counter()
        for one, times in self._all_terms():
            for two, factor in other._all_terms():
                factors[_ordered((*one, *two))] += times * factor
        offset = factors.pop((), 0)
        return _size(factors, offset)

    __rmul__ = __mul__

    def _all_terms(self) -> tuple[tuple[Product, int], ...]:
        return (*self.terms, ((), self.offset)) if self.offset else self.terms

    def __floordiv__(self, divisor: int) -> Size:
        """
        The size over a number above 0, rounded down.

        What the number divides is no part of the quotient, and that of a quotient is one quotient: forms of windows
        over windows are equal where their sizes are. Others need not be, as `(h + 1) // 2` and `h - h // 2`.
        """
        parts = {product: divmod(times, divisor) for product, times in self.terms}
        whole, offset = divmod(self.offset, divisor)
        rest = _size({product: times for product, (_, times) in parts.items()}, offset)
        return _size({product: count for product, (count, _) in parts.items()}, whole) + _quotient(rest, divisor)

    @property
    def is_symbol(self) -> bool:
        """Whether it is a symbol itself."""
        return any(self == SymbolicSize.of(symbol) for symbol in self.symbols)

    def divided(self, other: Size) -> Size | None:
        """The size whose product with `other` is this one; `None` if there is none, or `other` is a sum."""
        ((divisor, number), *rest) = (((), other),) if isinstance(other, int) else other._all_terms()
        if rest or not number:
            return None
        factors: Counter[Product] = Counter()
        for product, factor in self._all_terms():
            left = Counter(product)
            left.subtract(divisor)
            if factor % number or min(left.values(), default=0) < 0:
                return None
            factors[_ordered(left.elements())] += factor // number
        offset = factors.pop((), 0)
        return _size(factors, offset)

    @cached_property
    def largest_dividend(self) -> int:
        """The upper bound of all dividends of quotients in it, nested ones included; 0 without quotients."""
        dividends = [factor.dividend for factor in self.factors if isinstance(factor, Quotient)]
        return max((number for size in dividends for number in (size.most, size.largest_dividend)), default=0)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols, by name."""
        found: set[Symbol] = set()
        for factor in self.factors:
            found |= {factor} if isinstance(factor, Symbol) else {*factor.dividend.symbols}
        return tuple(sorted(found))

    @cached_property
    def factors(self) -> frozenset[Factor]:
        """The factors of its products."""
        return frozenset(factor for product, _ in self.terms for factor in product)

    @cached_property
    def has_quotients(self) -> bool:
        """Whether it is more than a sum of products of symbols."""
        return any(isinstance(factor, Quotient) for factor in self.factors)

    @cached_property
    def least(self) -> int:
        """A lower bound, exact if no symbol occurs with both signs."""
        bound = self._bound(lambda factor: factor.least, lambda factor: factor.most)
        return max(bound, math.ceil(self._range[0])) if self.has_quotients else bound

    @cached_property
    def most(self) -> int:
        """An upper bound, exact if no symbol occurs with both signs."""
        bound = self._bound(lambda factor: factor.most, lambda factor: factor.least)
        return min(bound, math.floor(self._range[1])) if self.has_quotients else bound

    @cached_property
    def _range(self) -> tuple[Fraction, Fraction]:
        return _without_quotients(self)

    def _bound(self, added: Callable[[Factor], int], subtracted: Callable[[Factor], int]) -> int:
        return self.offset + sum(
            factor * math.prod(map(added if factor > 0 else subtracted, product)) for product, factor in self.terms
        )

    def at(self, values: Mapping[str, int]) -> int:
        """The value for these values of symbols."""
        total = self.offset
        for product, times in self.terms:
            for factor in product:
                times *= _value(factor, values)
            total += times
        return total

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, spell: Callable[[str], str]) -> str:
        """The sum as text; `spell` formats names."""
        text = ""
        for product, factor in self.terms:
            number = [str(abs(factor))] if abs(factor) != 1 else []
            alone = len(product) + len(number) == 1
            names = " * ".join([*(_spelled_factor(item, spell, alone) for item in product), *number])
            text += f" {'-' if factor < 0 else '+'} {names}" if text or factor < 0 else names
        if self.offset:
            text += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        return text.strip()

    __repr__ = __str__  # Tuples of sizes are in messages.


def _size(factors: Mapping[Product, int], offset: int) -> Size:
    """The sum of products; a number where none is left."""
    terms = tuple(sorted(((product, factor) for product, factor in factors.items() if factor), key=_sort_key_of_term))
    return _limited(SymbolicSize(terms, offset)) if terms else offset


def _limited(size: SymbolicSize) -> SymbolicSize:
    """The size itself; raises `UnsupportedError` for one of too many parts."""
    if size.parts > MAX_PARTS:
        names = ", ".join(symbol.name for symbol in size.symbols)
        reason = f"a size that follows from {names} is written with more than {MAX_PARTS} symbols and quotients"
        raise UnsupportedError(reason, hint=NUMBERS_INSTEAD)
    return size


def _value(factor: Factor, values: Mapping[str, int]) -> int:
    """The value of a factor for these values of symbols."""
    return values[factor.name] if isinstance(factor, Symbol) else factor.at(values)


def _spelled_factor(factor: Factor, spell: Callable[[str], str], alone: bool) -> str:
    """A factor as text, among others or alone."""
    if isinstance(factor, Symbol):
        return spell(factor.name)
    return factor.spelled(spell) if alone else f"({factor.spelled(spell)})"


def _quotient(rest: Size, divisor: int) -> Size:
    """A size over a number, rounded down, where each number in it is from 0 up to that one."""
    if isinstance(rest, int):
        return rest // divisor
    common = math.gcd(divisor, *(times for _, times in rest.terms))
    if common > 1:
        # What the offset leaves over the common divisor is less than a step of the products.
        terms = {product: times // common for product, times in rest.terms}
        return _size(terms, rest.offset // common) // (divisor // common)
    if rest.least // divisor == rest.most // divisor:
        return rest.least // divisor
    inner = [factor for factor in rest.factors if isinstance(factor, Quotient)]
    if len(inner) == 1 and dict(rest.terms).get((inner[0],)) == 1 and _comes_once(rest, inner[0]):
        # Rounding down twice is rounding down once.
        within = SymbolicSize((((inner[0],), 1),))
        return (inner[0].dividend + (rest - within) * inner[0].divisor) // (divisor * inner[0].divisor)
    return _limited(SymbolicSize((((Quotient(rest, divisor),), 1),)))


def _comes_once(size: SymbolicSize, factor: Factor) -> bool:
    return sum(factor in product for product, _ in size.terms) == 1


def _without_quotients(size: SymbolicSize) -> tuple[Fraction, Fraction]:
    """
    Between which numbers a size lies, where each quotient that is no factor of others is taken for what it is of.

    It is the dividend less a remainder, over the divisor: so `height - 2 * (height floordiv 2)` is at most 1.
    """
    from fractions import Fraction  # Few models have quotients.

    factors: dict[Product, Fraction] = {}
    low = high = Fraction(0)

    def add(part: SymbolicSize, scale: Fraction) -> None:
        nonlocal low, high
        low, high = low + part.offset * scale, high + part.offset * scale
        for product, times in part.terms:
            share = times * scale
            if len(product) == 1 and isinstance(quotient := product[0], Quotient):
                share /= quotient.divisor
                remainder = share * (1 - quotient.divisor)
                low, high = low + min(remainder, 0), high + max(remainder, 0)
                add(quotient.dividend, share)
            else:
                factors[product] = factors.get(product, Fraction(0)) + share

    add(size, Fraction(1))
    for product, share in factors.items():
        ends = [share * math.prod(f.least for f in product), share * math.prod(f.most for f in product)]
        low, high = low + min(ends), high + max(ends)
    return low, high


Dimension = int | tuple[int, int | None]
"""The size of a free dimension, or its bounds; an upper bound of `None` grows with the sizes of calls."""

GivenDimension = Dimension | str
"""The user's setting for a free dimension: its size, its bounds, or an expression of others, such as `past + 1`."""

Size = int | SymbolicSize
"""The number of elements along an axis; `size // 2` rounds down for both."""

Sizes = tuple[Size, ...]
"""The sizes of all axes."""


def are_numbers(sizes: Sequence[object]) -> TypeGuard[Sequence[int]]:
    """Whether all sizes, or numbers of machine code, are known when a model is compiled."""
    return all(isinstance(size, int) for size in sizes)


def numbers_in(sizes: Iterable[object]) -> list[int]:
    """The sizes, or numbers of machine code, that are known when a model is compiled."""
    return [size for size in sizes if isinstance(size, int)]


def labels_of(sizes: Iterable[Size]) -> tuple[int | str, ...]:
    """The sizes as models declare them: numbers, and the text of others."""
    return tuple(size if isinstance(size, int) else str(size) for size in sizes)


def size_from_label(label: str, known: Mapping[str, Size]) -> Size | None:
    """
    The size given by a label that is an expression of other sizes, such as `past + tokens` or `(height + 1) // 2`,
    where `//` may also be `floordiv`; `None` for any other label.

    Exporters use such labels for dependent sizes, and so do outputs of sessions.
    """
    words = [word for part in _PARTS.split(label) if (word := part.strip())][::-1]
    total = None if label.strip().isdecimal() else _read_sum(words, known)
    return None if words else total


_PARTS = re.compile(r"(//|\bfloordiv\b|[-+*()])")
"""Separates the operators of labels that are expressions."""


def with_numbers(label: str, known: Mapping[str, int]) -> int | str:
    """A label that is an expression with numbers in place of known sizes; its size, if all are known."""
    size = size_from_label(label, known)
    if isinstance(size, int):
        return size
    parts = ((part, part.strip()) for part in _PARTS.split(label))
    return "".join(part.replace(word, str(known[word])) if word in known else part for part, word in parts)


def _read_sum(words: list[str], known: Mapping[str, Size]) -> Size | None:
    """The sum with which words begin, the last of which is the first, and which are taken; `None` where none is."""
    total: Size = 0
    sign = words.pop() if words and words[-1] in "+-" else "+"
    while sign:
        product = _read_product(words, known)
        if product is None:
            return None
        total = (-product if sign == "-" else product) + total
        sign = words.pop() if words and words[-1] in "+-" else ""
    return total


def _read_product(words: list[str], known: Mapping[str, Size]) -> Size | None:
    """Likewise a product, or a quotient by a number."""
    product = _read_factor(words, known)
    while product is not None and words and words[-1] in ("*", "//", "floordiv"):
        if words.pop() == "*":
            factor = _read_factor(words, known)
            product = None if factor is None else factor * product
        else:
            divisor = words.pop() if words else ""
            product = product // int(divisor) if divisor.isdecimal() and int(divisor) else None
    return product


def _read_factor(words: list[str], known: Mapping[str, Size]) -> Size | None:
    """Likewise a number, the name of a size, or a sum in parentheses."""
    word = words.pop() if words else ""
    if word == "(":
        total = _read_sum(words, known)
        return total if words and words.pop() == ")" else None
    return int(word) if word.isdecimal() else known.get(word)


def product_of(sizes: Iterable[Size]) -> Size:
    """The product of sizes: how many elements a tensor has."""
    total: Size = 1
    for size in sizes:
        total = size * total
    return total


def quotient(total: Size, part: Size) -> Size | None:
    """The size whose product with `part` is `total`; `None` if none is found."""
    if isinstance(total, SymbolicSize):
        return total.divided(part)
    if isinstance(part, SymbolicSize) or not part or total % part:
        return 0 if total == 0 else None
    return total // part


def symbols_of(sizes: Iterable[Size]) -> list[Symbol]:
    """The symbols in some sizes, each once, in the order of their names."""
    return sorted({symbol for size in sizes if isinstance(size, SymbolicSize) for symbol in size.symbols})


def tell_symbols(lengths: Iterable[tuple[Size, int]], values: dict[str, int]) -> None:
    """
    Infer values of symbols from sizes with known lengths; `values` has known values, and gets the new ones.

    A size with several symbols determines one if the others are known, in any order; quotients determine none.
    """
    left = [(size, actual) for size, actual in lengths if not isinstance(size, int)]
    count = len(left) + 1
    while len(left) < count:
        count = len(left)
        left = [(size, actual) for size, actual in left if not _tell_symbol(size, actual, values)]


def _tell_symbol(size: SymbolicSize, actual: int, values: dict[str, int]) -> bool:
    """Infer the only unknown symbol of a size; false if there are several."""
    unknown = [symbol for symbol in size.symbols if symbol.name not in values]
    if unknown and (len(unknown) > 1 or size.has_quotients):
        return False
    for symbol in unknown:
        rest = size.at({**values, symbol.name: 0})
        step = size.at({**values, symbol.name: 1}) - rest
        values[symbol.name] = (actual - rest) // step if step else symbol.least
    return True


def wrong_size(sizes: Sequence[Size], shape: Sequence[int], values: Mapping[str, int]) -> str:
    """The fault of an array's shape for these sizes and values of symbols; empty if none."""
    for axis, (size, actual) in enumerate(zip(sizes, shape, strict=True)):
        if isinstance(size, int):
            if size != actual:
                return f"axis {axis} is {actual} long, not {size}"
            continue
        if any(symbol.name not in values for symbol in size.symbols) or size.at(values) != actual:
            bound = ", ".join(f"{symbol.name} = {values.get(symbol.name, 'unknown')}" for symbol in size.symbols)
            return f"axis {axis} is {actual} long, not {size} with {bound}"
        for symbol in size.symbols:
            if not symbol.least <= values[symbol.name] <= symbol.most:
                return f"{symbol.name} = {values[symbol.name]} is not in {symbol.least} to {symbol.most}"
    return ""
