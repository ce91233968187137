"""
Attention of few queries, as in decoding: keys and values are read once and in place.

Packing them would take longer than the products, which are limited by memory bandwidth.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, chunks
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Rows:
    """Rows of elements in memory, `pitch` elements apart."""

    pointer: Value
    pitch: Index

    def at(self, row: Index, element: Attribute) -> Value:
        """Return the address of a row."""
        return self.pointer.at(row * self.pitch, element)


@dataclass(frozen=True)
class InPlace:
    """Emits the two products of attention, in vectors of at most `width` lanes."""

    b: Builder
    element: Attribute
    width: int

    def scores(
        self, into: Rows, queries: Rows, keys: Rows, rows: Index, limit: Index, depth: int, scale: float
    ) -> None:
        """Store the products of `rows` queries with the first `limit` keys, times `scale`."""
        with self.b.loop(0, rows) as row, self.b.loop(0, limit) as n:
            product = self._dot(queries.at(row, self.element), keys.at(n, self.element), depth)
            scaled = product if scale == 1 else product * scale
            into.at(row, self.element).at(n, self.element).store(scaled)

    def _dot(self, x: Value, y: Value, depth: int) -> Value:
        """Return the dot product of `depth` elements."""
        b, parts = self.b, list[Value]()
        for start, stop, width in chunks(depth, self.width):
            type_ = vector(self.element, width)
            with b.loop(start, stop, width, carried=[b.constant(0.0, type_)]) as loop:
                left, right = (pointer.at(loop.index, self.element).load(type_) for pointer in (x, y))
                loop.set(b.fma(left, right, loop.values[0]))
            parts.append(b.reduce(loop.results[0], b.add))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def means(
        self, into: Rows, weights: Rows, values: Rows, factors: Value, rows: Index, limit: Index, width: int
    ) -> None:
        """Store the weighted sums of the first `limit` values, times the factor of each row."""
        b, element = self.b, self.element
        with b.loop(0, rows) as row:
            for start, stop, lanes in chunks(width, self.width):
                type_ = vector(element, lanes)
                with b.loop(start, stop, lanes) as column:
                    with b.loop(0, limit, carried=[b.constant(0.0, type_)]) as loop:
                        weight = weights.at(row, element).at(loop.index, element).load(element)
                        value = values.at(loop.index, element).at(column, element).load(type_)
                        loop.set(b.fma(b.splat(weight, lanes), value, loop.values[0]))
                    factor = b.splat(factors.at(row, element).load(element), lanes)
                    into.at(row, element).at(column, element).store(loop.results[0] * factor)
