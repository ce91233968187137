"""Sorts of integer keys with positions: what kernels that order elements share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Attribute

from glow_mlir.codegen.access import load_as, raw
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.nests import Index
from glow_mlir.codegen.builder.types import i32, i64, index_type, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Buffer, Operand
from glow_mlir.dialects.element_types import bit_width, byte_width, is_float, is_unsigned
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

_MAX_RANKED = {1: 160, 2: 128}
"""
Integers of an entry → up to how many entries are ordered by their ranks: the number of entries before each, which
vectors count where an entry is one integer.
"""

_RANKED_VECTORS = 2

_DIGITS = 256
"""A digit of the radix sort is a byte."""

_POSITION_BITS = 32

MAX_POSITIONS = 1 << 31
"""More entries have positions that do not fit, signed, into an entry."""


def sorts_keys(target: Target) -> bool:
    """Whether a target has 64-bit integers and memory for keys; others sort in the results themselves."""
    return target.wide_integers and target.policy.optimize != "size"


def order_key(b: Builder, bits: Value, element: Attribute, descending: bool) -> Value:
    """
    The bits of elements as unsigned integers in the order of the elements, or in the opposite one.

    NaN is larger than any number, and all NaN are equal, as are both zeros.
    """
    width = bits.info.bits
    sign = -(1 << (width - 1))
    if is_float(element):
        magnitude = bits & ~sign
        is_nan = b.compare("ugt", magnitude, _infinity(element))
        bits = b.select(is_nan, ~sign, b.select(magnitude.eq(0), 0, bits))
        key = bits ^ ((bits >> (width - 1)) | sign)
    else:
        key = bits if is_unsigned(element) else bits ^ sign
    return ~key if descending else key


def _infinity(element: Attribute) -> int:
    """The bits of infinity."""
    exponent = {16: 8 if isinstance(element, BFloat16Type) else 5, 32: 8, 64: 11}[bit_width(element)]
    mantissa = bit_width(element) - 1 - exponent
    return ((1 << exponent) - 1) << mantissa


@dataclass(frozen=True)
class Sort:
    """
    The sort of entries for one element type: keys of its width, each with a position.

    An entry of a key of up to 32 bits is one i64, with the position in its low half; a wider key has an i64 of its own
    before that of the position. `descending` puts the largest elements first.
    """

    element: Attribute
    descending: bool

    @property
    def is_wide(self) -> bool:
        """Whether an entry has two integers."""
        return byte_width(self.element) > _POSITION_BITS // 8

    @property
    def words(self) -> int:
        """The i64 of an entry."""
        return 1 + self.is_wide

    def is_by_ranks(self, capacity: int) -> bool:
        """Whether up to so many entries are ordered by ranks, and not by digits."""
        return capacity <= _MAX_RANKED[self.words]

    def scratch(self, capacity: int, target: Target) -> Sequence[Buffer]:
        """The buffers of a sort of up to so many entries: the entries, as many others, and counters of digits."""
        padding = _ranked_lanes(target) if self.is_by_ranks(capacity) else 0
        entries = ((max(capacity + padding, 1) * self.words,), i64)
        digits = 1 if self.is_by_ranks(capacity) else byte_width(self.element) * _DIGITS
        return [entries, entries, ((digits,), i32)]

    # ---- entries

    def key(self, b: Builder, operand: Operand, offset: Index, lanes: int = 1) -> Value:
        """The keys of some elements that lie side by side."""
        return order_key(b, load_as(b, operand, raw(self.element), offset, 1, lanes), self.element, self.descending)

    def entry(self, b: Builder, key: Value, position: Value) -> list[Value]:
        """The words of an entry."""
        wide = b.cast(key, i64, signed=False)
        place = b.cast(position, i64)
        return [wide, place] if self.is_wide else [(wide << _POSITION_BITS) | place]

    def put(self, entries: Value, slot: Index, words: Sequence[Value]) -> None:
        """Write an entry."""
        for number, word in enumerate(words):
            entries.at(slot * self.words + number, i64).store(word)

    def get(self, entries: Value, slot: Index) -> list[Value]:
        """Read an entry."""
        return [entries.at(slot * self.words + number, i64).load(i64) for number in range(self.words)]

    def position(self, b: Builder, entries: Value, slot: Index) -> Value:
        """The position of an entry, as an index."""
        word = entries.at(slot * self.words + self.words - 1, i64).load(i64)
        return b.index(word if self.is_wide else word & ((1 << _POSITION_BITS) - 1))

    def key_at(self, b: Builder, entries: Value, slot: Index) -> Value:
        """The key of an entry, as wide as the element."""
        word = entries.at(slot * self.words, i64).load(i64)
        return b.cast(word if self.is_wide else b.lshr(word, _POSITION_BITS), raw(self.element))

    # ---- sorts

    def first(self, b: Builder, buffers: Sequence[Operand], capacity: int, count: Index, wanted: Index) -> None:
        """
        Sort `count` entries of the first buffer so far that the first `wanted` ones are there in order.

        Among equal keys, that with the lower position goes first: those have to be in the order of their positions.
        `capacity` is that for which the buffers were made.
        """
        name = self._ranked(b.module) if self.is_by_ranks(capacity) else self._by_digits(b.module)
        b.call(name, [*(buffer.pointer for buffer in buffers), b.index(count), b.index(wanted)])

    def _copy(self, b: Builder, source: Value, target: Value, count: Value) -> None:
        with b.loop(0, count * self.words) as word:
            target.at(word, i64).store(source.at(word, i64).load(i64))

    def _ranked(self, module: ModuleBuilder) -> str:
        """The shared function that orders entries by ranks, behind which it adds some that go before none."""
        lanes = _ranked_lanes(module.target)

        def build(name: str) -> None:
            parameters = [ptr, ptr, ptr, index_type, index_type]
            with define_function(module, name, parameters, internal=True, inline=False) as (b, arguments):
                entries, other, _, count, wanted = arguments
                with b.loop(count, count + (lanes - 1)) as slot:
                    self.put(entries, slot, [b.constant(-1, i64)] * self.words)
                with b.loop(0, count, lanes) as first:
                    ranks = self._ranks(b, entries, count, first, lanes)
                    for lane in range(lanes):
                        self.put(other, b.index(b.extract(ranks, lane)), self.get(entries, first + lane))
                self._copy(b, other, entries, wanted)

        return module.shared(("ranks", self.words), build)

    def _ranks(self, b: Builder, entries: Value, count: Value, first: Value, lanes: int) -> Value:
        """How many entries are before each of some that lie side by side."""
        many = entries.at(first * self.words, i64).load(vector(i64, lanes * self.words))
        words = [b.shuffle(many, many, range(n, 2 * lanes, 2)) for n in (0, 1)] if self.is_wide else [many]
        with b.loop(0, count, carried=[b.constant(0, vector(i64, lanes))]) as loop:
            other = [b.splat(word, lanes) for word in self.get(entries, loop.index)]
            before = b.compare("ult", other[0], words[0])
            if self.is_wide:
                before = before | (other[0].eq(words[0]) & b.compare("ult", other[1], words[1]))
            loop.set(loop.values[0] + b.cast(before, i64, signed=False))
        return loop.results[0]

    def _by_digits(self, module: ModuleBuilder) -> str:
        """The shared function of the radix sort, from the last digit to the first; each pass keeps the order."""
        bytes_ = byte_width(self.element)

        def build(name: str) -> None:
            parameters = [ptr, ptr, ptr, index_type, index_type]
            with define_function(module, name, parameters, internal=True, inline=False) as (b, arguments):
                entries, other, counters, count, wanted = arguments
                self._count(b, entries, counters, count)
                source, target = entries, other
                for digit in range(bytes_):
                    table = counters.at(digit * _DIGITS, i32)
                    same = self._slot(b, table, self.get(source, 0), digit).load(i32)
                    moves = b.index(same).ne(count)
                    with b.when(moves):
                        self._move(b, source, target, table, count, digit)
                    source, target = b.select(moves, target, source), b.select(moves, source, target)
                with b.when(b.address(source).ne(b.address(entries))):
                    self._copy(b, source, entries, wanted)

        return module.shared(("radix", bytes_), build)

    def _slot(self, b: Builder, table: Value, words: Sequence[Value], digit: int) -> Value:
        """The address of the counter of an entry's digit."""
        shift = 8 * digit + (0 if self.is_wide else _POSITION_BITS)
        return table.at(b.index(b.lshr(words[0], shift) & (_DIGITS - 1)), i32)

    def _count(self, b: Builder, entries: Value, counters: Value, count: Value) -> None:
        """Count the entries that have each value of each digit."""
        lanes = max(1, b.target.vector_width(i32))
        bytes_ = byte_width(self.element)
        with b.loop(0, bytes_ * _DIGITS, lanes) as start:
            counters.at(start, i32).store(b.constant(0, vector(i32, lanes)))
        with b.loop(0, count) as slot:
            words = self.get(entries, slot)
            for digit in range(bytes_):
                counter = self._slot(b, counters.at(digit * _DIGITS, i32), words, digit)
                counter.store(counter.load(i32) + 1)

    def _move(self, b: Builder, source: Value, target: Value, table: Value, count: Value, digit: int) -> None:
        """Turn counters into places, and move each entry to its own."""
        with b.loop(0, _DIGITS, carried=[b.constant(0, i32)]) as loop:
            counter = table.at(loop.index, i32)
            number = counter.load(i32)
            counter.store(loop.values[0])
            loop.set(loop.values[0] + number)
        with b.loop(0, count) as slot:
            words = self.get(source, slot)
            counter = self._slot(b, table, words, digit)
            place = counter.load(i32)
            counter.store(place + 1)
            self.put(target, b.index(place), words)


def _ranked_lanes(target: Target) -> int:
    """The entries whose ranks are counted at once: some vectors, each of which waits for its own sum."""
    return _RANKED_VECTORS * target.vector_width(i64)
