"""Mixtures of experts: a router sends each row through a few of several networks (Shazeer et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, EqualOp, MulOp, WhereOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_high.reductions import ReduceMaxOp, ReduceSumOp, TopKOp
from glow_mlir.dialects.glow_high.selection import NonZeroOp
from glow_mlir.dialects.shapes import size_along, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.support.dataclass import dataclass

Expert = Callable[[int, SSAValue], SSAValue]
"""Number of an expert, and rows → the expert's results for these rows."""


@dataclass(frozen=True)
class Routing:
    """The experts of each row, and the weights of their results."""

    experts: SSAValue
    """[rows, k], the numbers of the experts of each row."""
    shares: SSAValue
    """[rows, k], the weights of their results."""
    count: int
    """The number of experts."""

    @staticmethod
    def of(node: NodeBuilder, scores: SSAValue, k: int, is_normalized: bool, shares: SSAValue | None = None) -> Routing:
        """
        Choose the k experts with the largest scores [rows, experts]; the first ones if scores are equal.

        Shares are the softmax of the scores unless given; if `is_normalized`, the chosen ones of each row are scaled to
        the sum 1.
        """
        given = node.emit(SoftmaxOp, node.cast(scores, f32), axis=-1) if shares is None else node.cast(shares, f32)
        _, experts = node.emit_all(TopKOp, scores, k=k, axis=-1)
        chosen = node.emit(GatherElementsOp, given, experts, axis=1)
        if is_normalized:
            chosen = node.emit(DivOp, chosen, node.emit(ReduceSumOp, chosen, axes=(1,), keepdims=True))
        return Routing(experts, chosen, size_along(scores, 1))


Experts = Callable[[SSAValue, SSAValue], SSAValue]
"""Rows, and the expert of each row → the experts' results for these rows."""


def grouped_mixture(node: NodeBuilder, rows: SSAValue, routing: Routing, experts: Experts, width: int) -> SSAValue:
    """
    The sum of the results of each row's experts, weighted by their shares, as f32 [rows, width].

    Each row is repeated for each of its experts, and all rows are computed by one call of `experts`.
    """
    (count, k), depth = sizes_of(routing.experts), size_along(rows, 1)
    single = node.emit(ReshapeOp, rows, shape=(count, 1, depth))
    repeated = node.emit(ExpandOp, single, shape=(count, k, depth))
    numbers = node.emit(ReshapeOp, routing.experts, shape=(count * k,))
    results = experts(node.emit(ReshapeOp, repeated, shape=(count * k, depth)), numbers)
    apart = node.emit(ReshapeOp, node.cast(results, f32), shape=(count, k, width))
    shares = node.emit(ReshapeOp, routing.shares, shape=(count, k, 1))
    return node.emit(ReduceSumOp, node.emit(MulOp, apart, shares), axes=(1,), keepdims=False)


def mixture(node: NodeBuilder, rows: SSAValue, routing: Routing, expert: Expert, width: int) -> SSAValue:
    """
    The sum of the results of each row's experts, weighted by their shares, as f32 [rows, width].

    Each expert computes its own rows only, so that the cost does not grow with the number of experts, and their weights
    need not be copied.
    """
    count = sizes_of(rows)[0]
    total = node.splat(0.0, f32, (count, width))
    for number in range(routing.count):
        is_chosen = node.emit(EqualOp, routing.experts, node.constant(np.array(number, np.int64)))
        share = node.emit(WhereOp, is_chosen, routing.shares, node.splat(0.0, f32))
        share = node.emit(ReduceSumOp, share, axes=(1,), keepdims=True)
        positions, found = node.emit_all(NonZeroOp, node.emit(ReduceMaxOp, is_chosen, axes=(1,), keepdims=False))
        own = node.bind_symbol(found, largest(count))
        positions = node.emit(ReshapeOp, cut(node, positions, {1: (0, own)}), shape=(own,))
        result = node.cast(expert(number, node.emit(GatherOp, rows, positions, axis=0)), f32)
        result = node.emit(MulOp, result, node.emit(GatherOp, share, positions, axis=0))
        column = node.emit(ReshapeOp, positions, shape=(own, 1))
        total = node.emit(ScatterNDOp, total, column, result, reduction="add")
    return total
