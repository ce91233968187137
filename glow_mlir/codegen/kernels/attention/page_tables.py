"""Which pages have the tokens of sequences: the code that looks rows up in tables, and checks what it finds there."""

from __future__ import annotations

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.index_checks import as_i64, checked
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PageTables:
    """The tables of a call with the operands `table`, `sequences` and `positions`."""

    call: KernelCall
    pages: Index
    """The number of pages."""
    block: int
    """The number of tokens of a page."""

    @property
    def b(self) -> Builder:
        """The builder of the call."""
        return self.call.b

    @property
    def tokens(self) -> Index:
        """The number of tokens for which a sequence has pages."""
        return self.call.one("table").extents[1] * self.block

    def _at(self, operand: Operand, row: Value) -> Value:
        return read_index(self.b, operand, row * operand.strides[0])

    def position_of(self, row: Value) -> Value:
        """Return the position of a row; the instruction fails where the table has no page for it, which gives -1."""
        b, sequences = self.b, self.call.one("table").extents[0]
        position, sequence = self._at(self.call.one("positions"), row), self._at(self.call.one("sequences"), row)
        fits = b.compare("ult", sequence, as_i64(b, sequences)) & (position < as_i64(b, self.tokens))
        is_padding = position < 0
        with b.when(~(fits | is_padding)):
            self.call.fail()
        return b.index(b.select(fits, position, -1))

    def length_of(self, row: Value, position: Value) -> Value:
        """
        Return the number of tokens of a row's sequence, by the operand `lengths`; 0 for padding.

        The instruction fails where the table has no pages for so many, or the row's position is not among them.
        """
        b, columns, lengths = self.b, self.call.one("table").extents[1], self.call.one("lengths")
        is_padding = position < 0
        sequence = b.select(is_padding, 0, b.index(self._at(self.call.one("sequences"), row)))
        length = self._at(lengths, sequence)
        fits = (length <= as_i64(b, columns * self.block)) & (as_i64(b, position) < length)
        with b.when(~(fits | is_padding)):
            self.call.fail()
        return b.index(b.select(fits, length, 0))

    def page_of(self, row: Value, number: Value) -> Value:
        """Return the page of that number in the sequence of a row; if there is none, the instruction fails, and 0."""
        table = self.call.one("table")
        sequence = self.b.index(self._at(self.call.one("sequences"), row))
        offset = sequence * table.strides[0] + number * table.strides[1]
        return checked(self.call, read_index(self.b, table, offset), self.pages, wraps=False)

    def found(self, into: Value, row: Value, start: Value, tokens: tuple[Value, Value]) -> FoundPages:
        """Look up the pages of some tokens, from the first to behind the last, of a chunk from `start` on."""
        b, (first, behind) = self.b, tokens
        before = start // self.block
        found = FoundPages(
            b, self.block, into, start, first // self.block - before, (behind - 1) // self.block - before
        )
        with b.loop(found.first, found.last + 1) as number:
            into.at(number, i32).store(b.cast(self.page_of(row, before + number), i32))
        return found


@dataclass(frozen=True)
class FoundPages:
    """The pages of some tokens of a sequence: numbers `first` to `last`, counted from the page of token `start`."""

    b: Builder
    block: int
    pages: Value
    start: Value
    first: Value
    last: Value

    def slot_of(self, token: Value) -> tuple[Value, Value]:
        """
        Return the page of a token, which is counted from `start`, and its slot there.

        For tokens in front or behind, this is one in the first or the last page.
        """
        token = self.start + token
        number = token // self.block - self.start // self.block
        page = self.pages.at(self.b.min(self.b.max(number, self.first), self.last), i32).load(i32)
        return self.b.index(page), token % self.block
