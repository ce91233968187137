"""The sequences of a batch ordered by length, so that those that are still running are the first rows."""

from __future__ import annotations

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Buffer, Operand
from glow_mlir.support.dataclass import dataclass

SEQUENCES, LENGTHS = range(2)
"""Rows of the scratch buffer: the sequence of each row, and its number of steps."""


@dataclass(frozen=True)
class SequenceOrder:
    """The order of sequences: the longest comes first; sequences of equal length keep the order of the batch."""

    b: Builder
    scratch: Operand
    batch: Index

    @staticmethod
    def buffer(batch: int) -> Buffer:
        """Return the scratch buffer for a batch."""
        return (2, batch), i64

    def sequence(self, row: Index) -> Value:
        """Return the index in the batch of the sequence of a row."""
        return self.b.index(self._at(SEQUENCES, row).load(i64))

    def length(self, row: Index) -> Value:
        """Return the number of steps of the sequence of a row."""
        return self.b.index(self._at(LENGTHS, row).load(i64))

    def running(self, time: Value) -> Value:
        """Return the number of rows that have a step: these are the first rows."""
        b = self.b
        with b.loop(0, self.batch, carried=[b.index(0)]) as loop:
            loop.set(loop.values[0] + b.select(time < self.length(loop.index), b.index(1), b.index(0)))
        return loop.results[0]

    def sort(self, lengths: Operand, steps: Index) -> None:
        """Compute the order of sequences, whose lengths are limited to `steps`."""
        b = self.b

        def length(n: Value) -> Value:
            given = b.index(read_index(b, lengths, linear([n], lengths.strides)))
            return b.min(b.max(given, 0), steps)

        with b.loop(0, self.batch) as n:
            own = length(n)
            with b.loop(0, self.batch, carried=[b.index(0)]) as loop:
                other = length(loop.index)
                is_ahead = (other > own) | (other.eq(own) & (loop.index < n))
                loop.set(loop.values[0] + b.select(is_ahead, b.index(1), b.index(0)))
            for line, value in ((SEQUENCES, n), (LENGTHS, own)):
                self._at(line, loop.results[0]).store(b.cast(value, i64))

    def _at(self, line: int, row: Index) -> Value:
        return self.scratch.pointer.at(linear([line, row], self.scratch.strides), i64)
