"""
Bounded symbols, and sizes that are sums of their products: what callers and the compiler know of sizes.

A size is an `int`, or a `SymbolicSize` such as `batch * length * 4 + 1`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Symbol:
    """A number from `least` to `most`, 0 or more, that is known at run time; one name is one number."""

    name: str
    least: int
    most: int


Product = tuple[Symbol, ...]
"""A product of symbols, in the order of their names."""


@dataclass(frozen=True, repr=False)
class SymbolicSize:
    """The sum of `offset` and of products of symbols, each times a number other than 0; in the order of their names."""

    terms: tuple[tuple[Product, int], ...]
    offset: int = 0

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
                factors[tuple(sorted((*one, *two)))] += times * factor
        offset = factors.pop((), 0)
        return _size(factors, offset)

    __rmul__ = __mul__

    def _all_terms(self) -> tuple[tuple[Product, int], ...]:
        return (*self.terms, ((), self.offset)) if self.offset else self.terms

    def divided(self, other: Size) -> Size | None:
        """The size that gives this one times `other`; `None` where there is none, or `other` is a sum."""
        ((divisor, number), *rest) = (((), other),) if isinstance(other, int) else other._all_terms()
        if rest or not number:
            return None
        factors: Counter[Product] = Counter()
        for product, factor in self._all_terms():
            left = Counter(product)
            left.subtract(divisor)
            if factor % number or min(left.values(), default=0) < 0:
                return None
            factors[tuple(sorted(left.elements()))] += factor // number
        offset = factors.pop((), 0)
        return _size(factors, offset)

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols, by name."""
        return tuple(sorted({symbol for product, _ in self.terms for symbol in product}))

    @property
    def least(self) -> int:
        """A number that it is never below: the smallest that it may be, where no symbol comes with both signs."""
        return self._bound(lambda symbol: symbol.least, lambda symbol: symbol.most)

    @property
    def most(self) -> int:
        """A number that it is never above: the largest that it may be, where no symbol comes with both signs."""
        return self._bound(lambda symbol: symbol.most, lambda symbol: symbol.least)

    def _bound(self, added: Callable[[Symbol], int], subtracted: Callable[[Symbol], int]) -> int:
        return self.offset + sum(
            factor * math.prod(map(added if factor > 0 else subtracted, product)) for product, factor in self.terms
        )

    def at(self, values: Mapping[str, int]) -> int:
        """The number that it is where symbols have these values."""
        return self.offset + sum(
            factor * math.prod(values[symbol.name] for symbol in product) for product, factor in self.terms
        )

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, spell: Callable[[str], str]) -> str:
        """The sum as text, in which `spell` says how a name is written."""
        text = ""
        for product, factor in self.terms:
            names = " * ".join(
                [*(spell(symbol.name) for symbol in product), *([str(abs(factor))] if abs(factor) != 1 else [])]
            )
            text += f" {'-' if factor < 0 else '+'} {names}" if text or factor < 0 else names
        if self.offset:
            text += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        return text.strip()

    __repr__ = __str__  # Tuples of sizes are in messages.


def _size(factors: Mapping[Product, int], offset: int) -> Size:
    """The sum of products; a number where none is left."""
    terms = tuple(sorted((product, factor) for product, factor in factors.items() if factor))
    return SymbolicSize(terms, offset) if terms else offset


Dimension = int | tuple[int, int | None]
"""
What a user says of a free dimension: its size, or the smallest and the largest size; `None` for a largest one that
grows with the sizes of calls.
"""

Size = int | SymbolicSize
"""The number of elements along an axis."""

Sizes = tuple[Size, ...]
"""The sizes of all axes."""


def told_by(label: str, known: Mapping[str, Size]) -> Size | None:
    """
    The size that the label of a dimension says of others, as `past + tokens` does; `None` for any other label.

    Exporters give such labels to what follows from other sizes.
    """
    if not re.fullmatch(r"[+-]?[^+-]+([+-][^+-]+)*", label):
        return None
    total: Size = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", label):
        factors = [factor.strip() for factor in term.split("*")]
        if any(not factor.isdecimal() and factor not in known for factor in factors):
            return None
        product = product_of(int(factor) if factor.isdecimal() else known[factor] for factor in factors)
        total = (-product if sign == "-" else product) + total
    return None if label.strip().isdecimal() or not label.strip() else total


def product_of(sizes: Iterable[Size]) -> Size:
    """The product of sizes: how many elements a tensor has."""
    total: Size = 1
    for size in sizes:
        total = size * total
    return total


def quotient(total: Size, part: Size) -> Size | None:
    """The size that gives `total` times `part`; `None` where none does, or it is not found."""
    if isinstance(total, SymbolicSize):
        return total.divided(part)
    if isinstance(part, SymbolicSize) or not part or total % part:
        return 0 if total == 0 else None
    return total // part


def symbols_of(sizes: Iterable[Size]) -> list[Symbol]:
    """The symbols in some sizes, each once, in the order of their names."""
    return sorted({symbol for size in sizes if isinstance(size, SymbolicSize) for symbol in size.symbols})


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
        unknown = [symbol for symbol in size.symbols if symbol.name not in values]
        if len(unknown) == 1:
            name = unknown[0].name
            rest = size.at({**values, name: 0})
            step = size.at({**values, name: 1}) - rest
            values[name] = (actual - rest) // step if step else unknown[0].least
        if len(unknown) > 1 or size.at(values) != actual:
            told = ", ".join(f"{symbol.name} = {values.get(symbol.name, 'unknown')}" for symbol in size.symbols)
            return f"axis {axis} is {actual} long, not {size} with {told}"
        for symbol in size.symbols:
            if not symbol.least <= values[symbol.name] <= symbol.most:
                return f"{symbol.name} = {values[symbol.name]} is not in {symbol.least} to {symbol.most}"
    return ""
