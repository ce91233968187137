"""Mixtures of experts: networks of which each row is sent through a few, as a router says (Shazeer et al. 2017)."""

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
"""Number of an expert, and rows → what the expert makes of each row."""


@dataclass(frozen=True)
class Routing:
    """To which experts each row goes, and how much of their results it takes."""

    experts: SSAValue
    """[rows, k], the numbers of the experts of each row."""
    shares: SSAValue
    """[rows, k]"""
    count: int
    """How many experts there are."""

    @staticmethod
    def of(node: NodeBuilder, scores: SSAValue, k: int, is_normalized: bool, shares: SSAValue | None = None) -> Routing:
        """
        The k experts with the largest of scores [rows, experts], the first ones of equal ones.

        Shares are the softmax of the scores, unless others are given; of each row they make up 1 if they are to.
        """
        given = node.emit(SoftmaxOp, node.cast(scores, f32), axis=-1) if shares is None else node.cast(shares, f32)
        _, experts = node.emit_all(TopKOp, scores, k=k, axis=-1)
        chosen = node.emit(GatherElementsOp, given, experts, axis=1)
        if is_normalized:
            chosen = node.emit(DivOp, chosen, node.emit(ReduceSumOp, chosen, axes=(1,), keepdims=True))
        return Routing(experts, chosen, size_along(scores, 1))


Experts = Callable[[SSAValue, SSAValue], SSAValue]
"""Rows, and the number of the expert of each → what the experts make of them."""


def grouped_mixture(node: NodeBuilder, rows: SSAValue, routing: Routing, experts: Experts, width: int) -> SSAValue:
    """
    The results of the experts of each row, `width` elements long, by their shares, summed up in f32.

    Each row is there once for each of its experts, which compute all of these together.
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
    The results of the experts of each row, `width` elements long, by their shares, summed up in f32.

    Each expert sees its rows alone, so that what is computed does not grow with the number of experts, and their
    weights are read where they are.
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
