"""The sequences of a batch in the order in which they end, so that those that still run are the first rows."""

from __future__ import annotations

from glow_mlir.codegen.access import read_index
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear
from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Buffer, Operand
from glow_mlir.support.dataclass import dataclass

SEQUENCES, LENGTHS = range(2)
"""Rows of the scratch: of which sequence a row is, and how many steps that has."""


@dataclass(frozen=True)
class SequenceOrder:
    """The longest sequence of a batch is the first row; of equal ones, that which comes first in the batch."""

    b: Builder
    scratch: Operand
    batch: Index

    @staticmethod
    def buffer(batch: int) -> Buffer:
        """The scratch of a batch."""
        return (2, batch), i64

    def sequence(self, row: Index) -> Value:
        """The place in the batch of the sequence that a row is of."""
        return self.b.index(self._at(SEQUENCES, row).load(i64))

    def length(self, row: Index) -> Value:
        """How many steps the sequence of a row has."""
        return self.b.index(self._at(LENGTHS, row).load(i64))

    def running(self, time: Value) -> Value:
        """How many rows have a step: these are the first ones."""
        b = self.b
        with b.loop(0, self.batch, carried=[b.index(0)]) as loop:
            loop.set(loop.values[0] + b.select(time < self.length(loop.index), b.index(1), b.index(0)))
        return loop.results[0]

    def sort(self, lengths: Operand, steps: Index) -> None:
        """Find the order of sequences of at most so many steps."""
        b = self.b

        def length(n: Value) -> Value:
            told = b.index(read_index(b, lengths, linear([n], lengths.strides)))
            return b.min(b.max(told, 0), steps)

        with b.loop(0, self.batch) as n:
            own = length(n)
            with b.loop(0, self.batch, carried=[b.index(0)]) as loop:
                other = length(loop.index)
                is_ahead = (other > own) | (other.eq(own) & (loop.index < n))
                loop.set(loop.values[0] + b.select(is_ahead, b.index(1), b.index(0)))
            for place, value in ((SEQUENCES, n), (LENGTHS, own)):
                self._at(place, loop.results[0]).store(b.cast(value, i64))

    def _at(self, place: int, row: Index) -> Value:
        return self.scratch.pointer.at(linear([place, row], self.scratch.strides), i64)
