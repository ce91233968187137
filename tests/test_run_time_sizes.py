"""Sizes that are known at run time only compute as the numbers do that their symbols turn out to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.parser import Parser

from glow_mlir.dialects.glow import GLOW
from glow_mlir.dialects.sizes import LargeDividendError, SizesAttr, largest, smallest
from glow_mlir.errors import InputError, UnsupportedError
from glow_mlir.runtime.artifact import _size  # pyright: ignore[reportPrivateUsage]
from glow_mlir.runtime.layouts import symbol_values
from glow_mlir.support.symbols import Size, Symbol, SymbolicSize, quotient, size_from_label

SYMBOLS = (Symbol("height", 1, 40), Symbol("past tokens", 0, 9), Symbol("width", 3, 17))

VALUES = st.fixed_dictionaries({symbol.name: st.integers(symbol.least, symbol.most) for symbol in SYMBOLS})
"""What the symbols are."""

Meaning = Callable[[dict[str, int]], int]
"""What a size is, computed by Python."""

Told = tuple[Size, Meaning]
"""A size, and what it is."""


def _leaf(symbol: Symbol) -> Told:
    return SymbolicSize.of(symbol), lambda values: values[symbol.name]


def _number(number: int) -> Told:
    return number, lambda _: number


def _polynomials(parts: st.SearchStrategy[Told]) -> st.SearchStrategy[Told]:
    def summed(one: Told, two: Told) -> Told:
        return one[0] + two[0], lambda values: one[1](values) + two[1](values)

    def less(one: Told, two: Told) -> Told:
        return one[0] - two[0], lambda values: one[1](values) - two[1](values)

    def times(one: Told, two: Told) -> Told:
        return one[0] * two[0], lambda values: one[1](values) * two[1](values)

    return st.one_of(*(st.builds(operator, parts, parts) for operator in (summed, less, times)))


def _with_quotients(parts: st.SearchStrategy[Told]) -> st.SearchStrategy[Told]:
    def over(one: Told, divisor: int) -> Told:
        return one[0] // divisor, lambda values: one[1](values) // divisor

    return st.one_of(_polynomials(parts), st.builds(over, parts, st.integers(1, 9)))


LEAVES = st.one_of(st.sampled_from(SYMBOLS).map(_leaf), st.integers(-9, 9).map(_number))
POLYNOMIALS = st.recursive(LEAVES, _polynomials, max_leaves=5)
SIZES = st.recursive(LEAVES, _with_quotients, max_leaves=7)


@given(SIZES, VALUES)
def test_a_size_is_what_python_computes(told: Told, values: dict[str, int]) -> None:
    size, meaning = told
    assert (size if isinstance(size, int) else size.at(values)) == meaning(values)
    assert smallest(size) <= meaning(values) <= largest(size)


@given(SIZES)
def test_text_and_manifests_have_sizes_as_they_are(told: Told) -> None:
    attribute = SizesAttr((told[0],))
    context = Context()
    context.load_dialect(GLOW)
    assert Parser(context, str(attribute)).parse_attribute() == attribute
    if isinstance(told[0], SymbolicSize):
        assert _size(json.loads(json.dumps(asdict(told[0])))) == told[0]


@given(SIZES, st.integers(1, 9), VALUES)
def test_what_a_number_divides_is_no_part_of_a_quotient(told: Told, divisor: int, values: dict[str, int]) -> None:
    size, meaning = told
    rest = meaning(values) % divisor
    assert (size * divisor) // divisor == size
    assert (size * divisor + rest) // divisor == size
    assert quotient(size * divisor, divisor) == size
    assert (size + divisor) // divisor == size // divisor + 1


@given(POLYNOMIALS, st.integers(1, 9), st.integers(1, 9))
def test_one_division_after_the_other_is_one(told: Told, first: int, second: int) -> None:
    """The same for a sum behind the first one, as windows over windows have."""
    assert told[0] // first // second == told[0] // (first * second)
    assert (told[0] // first + 1) // second == (told[0] + first) // (first * second)


HEIGHT, PAST, WIDTH = map(SymbolicSize.of, SYMBOLS)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ((HEIGHT + 1) // 2, "(height + 1) floordiv 2"),
        (HEIGHT // 2 * WIDTH, "width * (height floordiv 2)"),
        ((HEIGHT * 3 + 5) // 2, "height + (height + 1) floordiv 2 + 2"),
        ((HEIGHT * 2 + 3) // 4, "(height + 1) floordiv 2"),
        ((HEIGHT - 1) // 2 + 1, "(height + 1) floordiv 2"),
        (HEIGHT // 41, "0"),
        (-HEIGHT // 2, "- height + height floordiv 2"),
        (((HEIGHT + 1) // 2 + 1) // 2, "(height + 3) floordiv 4"),
    ],
)
def test_equal_quotients_have_one_form(size: Size, text: str) -> None:
    assert str(size) == text


def test_bounds_know_what_rounding_leaves() -> None:
    rest = cast("Any", HEIGHT - HEIGHT // 4 * 4)
    assert (rest.least, rest.most) == (0, 3)
    assert (smallest((HEIGHT + 1) // 2), largest((HEIGHT + 1) // 2)) == (1, 20)


def test_a_quotient_tells_no_symbol() -> None:
    """It is checked, also where it is the size of an input in front of the one that tells."""
    half = cast("SymbolicSize", HEIGHT // 2)

    def told(*inputs: tuple[SymbolicSize, int]) -> dict[str, int]:
        declared = [(f"x{place}", (size,)) for place, (size, _) in enumerate(inputs)]
        return symbol_values(declared, {f"x{place}": (length,) for place, (_, length) in enumerate(inputs)})

    assert told((half, 3), (HEIGHT, 7)) == told((HEIGHT, 7), (half, 3)) == {"height": 7}
    with pytest.raises(InputError, match="height = unknown"):
        told((half, 3))
    with pytest.raises(InputError, match=r"^input 'x0': axis 0 is 4 long, not height floordiv 2 with height = 7"):
        told((half, 4), (HEIGHT, 7))


def test_sizes_stay_short() -> None:
    """What is scaled up and down again and again has a size that is twice as long each time."""

    def scaled(times: int) -> Any:
        size: Any = HEIGHT
        for _ in range(times):
            size = ((size * 3 // 2) + 1) // 2
        return size

    assert scaled(8).parts > 200
    with pytest.raises(UnsupportedError, match=r"^a size that follows from height is written with more than 1024 "):
        scaled(20)


def test_dividends_have_room_in_64_bits() -> None:
    step = 1 << 57
    small, large = HEIGHT * (step - 1) // step, HEIGHT * (step * 16 - 1) // (step * 16)
    SizesAttr((small,))
    for size in (large, cast("Any", large * 3 + 1) * 2 // 7):
        with pytest.raises(LargeDividendError, match=r"^the size .* is of numbers that 64 bits have no room for"):
            SizesAttr((size,))


@given(SIZES)
def test_labels_say_sizes_as_sessions_spell_them(told: Told) -> None:
    known = {symbol.name: SymbolicSize.of(symbol) for symbol in SYMBOLS}
    if isinstance(told[0], SymbolicSize):
        assert size_from_label(str(told[0]), known) == told[0]
        assert size_from_label(str(told[0]).replace(" floordiv ", "//"), known) == told[0]


@pytest.mark.parametrize(
    "label", ["", "-", "4", "height +", "height//0", "4//height", "(height", "height)", "other//2"]
)
def test_other_labels_say_no_size(label: str) -> None:
    assert size_from_label(label, {"height": HEIGHT}) is None
