"""Quantized values in panels of dot groups, brought into bytes of registers: bits of bytes, planes, and tables."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i8, i32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, DOT_GROUP_BYTES, planes_of, unit_values
from glow_mlir.support.dataclass import dataclass

BYTE_BITS = DOT_GROUP_BITS // DOT_GROUP_BYTES

_ONES = 0x01010101
"""Four bytes of 1."""

_TABLE_BYTES = 16
"""The bytes of a table, in each 128 bits of a register."""


@dataclass(frozen=True)
class PackedValues:
    """
    The values of columns in a panel, of `bits` bits, as `sub_byte_values.pack_dot_groups` has them.

    A *unit* has some neighbours of each column in whole dot groups, `words` of them, the words of a column. With a
    `table`, a value stands for one of its entries.
    """

    bits: int
    table: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of values of a column in a unit."""
        return unit_values(self.bits)

    @property
    def words(self) -> int:
        """The number of words of a column in a unit."""
        return self.count * self.bits // DOT_GROUP_BITS

    @property
    def quads(self) -> int:
        """The number of times that four values of a column are brought into bytes."""
        return self.count // DOT_GROUP_BYTES

    def smallest(self, *, signed: bool) -> int:
        """The integer that bytes of 0 stand for: bytes are those integers less it."""
        if signed and (self.table or self.bits == BYTE_BITS):
            return 0
        return min(self.table) if self.table else -(1 << self.bits - 1)

    @property
    def largest_byte(self) -> int:
        """The largest byte that is not signed."""
        return max(self.table) - min(self.table) if self.table else (1 << self.bits) - 1

    def loaded(self, b: Builder, address: Value, lanes: int, step: int) -> list[Value]:
        """The words of a unit of each of `lanes` columns; the rows of dot groups are `step` of them apart."""
        type_, align = vector(i32, lanes), DOT_GROUP_BYTES * lanes
        return [address.at(index * step, i32).load(type_, align=align) for index in range(self.words)]

    def unsigned(self, words: Sequence[Value]) -> list[Value]:
        """Words whose values have half of the range, which packed ones lack, added again; entries of tables do not."""
        if self.table:
            return list(words)
        plane = planes_of(self.bits)[-1]
        highest = sum(1 << position for position in range(plane - 1, DOT_GROUP_BITS, plane)) - (1 << DOT_GROUP_BITS)
        changed = self.count * plane // DOT_GROUP_BITS
        return [*words[:-changed], *(word ^ highest for word in words[-changed:])]

    def quad(self, b: Builder, words: Sequence[Value], number: int) -> Value:
        """Four values of each column, as the lowest bits of bytes that have no other ones."""
        found: Value | None = None
        first = below = 0
        for plane in planes_of(self.bits):
            fields = BYTE_BITS // plane
            word = words[first + number // fields]
            right = plane * (number % fields) - below
            moved = b.lshr(word, right) if right > 0 else b.shl(word, -right) if right else word
            alone = moved if plane == BYTE_BITS else moved & (((1 << plane) - 1 << below) * _ONES)
            found = alone if found is None else found | alone
            first, below = first + self.count * plane // DOT_GROUP_BITS, below + plane
        assert found is not None
        return found

    def looked_up(self, b: Builder, quad: Value, *, signed: bool) -> Value:
        """The bytes of entries of the table for four values of each column; without one, the values."""
        if not self.table:
            return quad
        less, half = self.smallest(signed=signed), 1 << self.bits - 1
        # The highest bit of packed values is changed.
        entries = [self.table[index ^ half] - less for index in range(1 << self.bits)]
        numbers = b.bitcast(quad, i8)
        table = [entry - 256 if entry > 127 else entry for entry in entries] * (numbers.lanes // _TABLE_BYTES)
        found = b.intrinsic(b.target.byte_tables, (b.constant(table, numbers.type), numbers), numbers.type)
        return b.bitcast(found, i32)
