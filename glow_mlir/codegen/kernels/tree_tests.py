"""What kernels of decision trees do to compare features with thresholds."""

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
"""A set of relations without that of NaN → the comparison of LLVM's that holds for them."""


def compared(b: Builder, test: int, values: Value, thresholds: Value) -> Value:
    """Whether values relate to thresholds in one of the ways of a set."""
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
        Loops over ranges; `body` gets the relations for which the tests hold, the feature, the first test, and the end.
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
