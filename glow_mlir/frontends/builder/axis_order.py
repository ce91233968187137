"""Permutations of axes: channels-last, used in computation, and channels-first, used by models."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.builder.emission import OperatorEmitter
from glow_mlir.frontends.builder.node_builder import NodeBuilder


def to_channels_last(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """[N, C, spatial…] as [N, spatial…, C]."""
    rank = rank_of(value)
    return node.emit(TransposeOp, value, permutation=(0, *range(2, rank), 1))


def to_channels_first(node: NodeBuilder, value: SSAValue) -> SSAValue:
    """[N, spatial…, C] as [N, C, spatial…]."""
    rank = rank_of(value)
    return node.emit(TransposeOp, value, permutation=(0, rank - 1, *range(1, rank - 1)))


def moved_axis(emit: OperatorEmitter, value: SSAValue, axis: int, index: int) -> SSAValue:
    """Move an axis to another position."""
    order = [position for position in range(rank_of(value)) if position != axis]
    order.insert(index, axis)
    return value if order == sorted(order) else emit(TransposeOp, value, permutation=order)
