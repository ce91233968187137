"""The common part of decision tree kernels that adds up the leaves reached by a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glow_mlir.codegen.access import computed, load, store
from glow_mlir.codegen.builder.nests import Index
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.dialects.glow_high.trees import Ensemble
from glow_mlir.dialects.properties import integer, text
from glow_mlir.support.dataclass import dataclass

STARTS = {"sum": 0.0, "min": np.inf, "max": -np.inf}
"""Aggregate → its initial value."""


def folded(call: KernelCall[Ensemble], one: Value, other: Value) -> Value:
    """Combine two weights, or aggregates of weights."""
    b, aggregate = call.b, text(call.op.aggregate)
    fold: Callable[[Value, Value], Value] = {"sum": b.add, "min": b.minimum, "max": b.maximum}[aggregate]
    return fold(one, other)


def together(call: KernelCall[Ensemble], weights: Sequence[Value]) -> Value:
    """Combine several weights, from the first to the last."""
    total = weights[0]
    for weight in weights[1:]:
        total = folded(call, total, weight)
    return total


def may_have_empty_targets(call: KernelCall[Ensemble]) -> bool:
    """Whether there may be a target without leaves, whose initial value has to be replaced by 0."""
    return text(call.op.aggregate) != "sum" and call.maybe("targets") is not None


@dataclass(frozen=True)
class RowSums:
    """Adds the weights of leaves to a row of the result in memory."""

    call: KernelCall[Ensemble]
    row: Index

    def begin(self) -> None:
        """Initialize the row."""
        call, b = self.call, self.call.b
        start = b.constant(STARTS[text(call.op.aggregate)], computed(call.result.element))
        with b.loop(0, integer(call.op.size)) as target:
            store(b, call.result, self._offset(target), start)

    def add(self, leaves: Sequence[Value]) -> None:
        """Add the weights of leaves."""
        call, b = self.call, self.call.b
        weights, targets = call.one("weights"), call.maybe("targets")
        across, along = weights.strides
        indices = [b.index(leaf) for leaf in leaves]
        with b.loop(0, weights.shape[1]) as column:
            found = [load(b, weights, leaf * across + column * along, 1, 1) for leaf in indices]
            if targets is None:
                self._fold(column, found)
            else:
                for leaf, weight in zip(indices, found, strict=True):
                    target = load(b, targets, leaf * targets.strides[0] + column * targets.strides[1], 1, 1)
                    with b.when(b.compare("ult", target, integer(call.op.size))):
                        self._fold(b.index(target), [weight])

    def add_next(self, tree: Index, leaves: Sequence[Index]) -> None:
        """Add up the weights of leaves of consecutive trees, then add them to the result of their target."""
        call, b = self.call, self.call.b
        weights, targets = call.one("weights"), call.maybe("targets")
        with b.loop(0, weights.shape[1]) as column:
            found = [
                load(b, weights, (tree + number) * weights.strides[0] + column * weights.strides[1] + leaf, 1, 1)
                for number, leaf in enumerate(leaves)
            ]
            if targets is None:
                self._fold(column, [together(call, found)])
            else:
                for number, weight in enumerate(found):
                    self._fold(b.index(load(b, targets, (tree + number) * targets.strides[0], 1, 1)), [weight])

    def _fold(self, target: Index, weights: Sequence[Value]) -> None:
        """Add weights to the result of a target, one after the other."""
        call, b, offset = self.call, self.call.b, self._offset(target)
        store(b, call.result, offset, together(call, [load(b, call.result, offset, 1, 1), *weights]))

    def end(self) -> None:
        """Replace the initial value of targets without leaves by 0."""
        call, b = self.call, self.call.b
        if not may_have_empty_targets(call):
            return
        start = STARTS[text(call.op.aggregate)]
        with b.loop(0, integer(call.op.size)) as target:
            offset = self._offset(target)
            found = load(b, call.result, offset, 1, 1)
            store(b, call.result, offset, b.select(found.eq(start), 0.0, found))

    def _offset(self, target: Index) -> Index:
        across, along = self.call.result.strides
        return self.row * across + target * along
