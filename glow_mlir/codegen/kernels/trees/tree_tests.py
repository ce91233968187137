"""The common part of decision tree kernels that compares features with thresholds."""

from __future__ import annotations

from collections.abc import Callable

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import i32
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.trees import EQUAL, GREATER, LESS, UNORDERED, BinnedTreeEnsembleOp
from glow_mlir.dialects.properties import ints
from glow_mlir.support.dataclass import dataclass

_PREDICATES = {
    0: "_false",
    LESS: "olt",
    EQUAL: "oeq",
    LESS | EQUAL: "ole",
    GREATER: "ogt",
    LESS | GREATER: "one",
    EQUAL | GREATER: "oge",
    LESS | EQUAL | GREATER: "ord",
}
"""A set of ordered relations → the LLVM comparison that holds for them."""


def compared(b: Builder, test: int, values: Value, thresholds: Value) -> Value:
    """Whether values have one of a set of relations to thresholds."""
    if not test & UNORDERED:
        return b.compare(_PREDICATES[test], values, thresholds)
    opposite = (LESS | EQUAL | GREATER) & ~test
    return ~b.compare(_PREDICATES[opposite], values, thresholds)


@dataclass(frozen=True)
class RangeLoop:
    """The loops over the ranges of tests of one feature."""

    call: KernelCall[BinnedTreeEnsembleOp]

    def each(self, body: Callable[[int, Value, Value, Value], None]) -> None:
        """
        Emit loops over ranges; `body` gets the relations for which the tests hold, the feature, and the first and end
        of the tests.
        """
        call, b, first = self.call, self.call.b, 0
        ranges, begin = call.one("ranges").pointer, call.b.index(0)
        for relation, count in zip(ints(call.op.relations), ints(call.op.counts), strict=True):
            with b.loop(first, first + count, carried=[begin]) as loop:
                own = ranges.at(loop.index * 2, i32)
                end = b.index(own.at(1, i32).load(i32))
                body(relation, b.index(own.load(i32)), loop.values[0], end)
                loop.set(end)
            (begin,) = loop.results
            first += count
