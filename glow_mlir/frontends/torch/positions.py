"""Positions along axes, and elements at computed positions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherElementsOp
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.support.symbols import Sizes


def positions_along(node: TorchNode, sizes: Sizes, axis: int) -> SSAValue:
    """The position of each element along an axis, as i64."""
    shape = tuple(size if other == axis else 1 for other, size in enumerate(sizes))
    return node.expanded(node.reshaped(iota(node, sizes[axis]), shape), sizes)


def at_positions(node: TorchNode, value: SSAValue, positions: SSAValue, axis: int) -> SSAValue:
    """The elements of a value at positions along an axis, of which `positions` has size 1."""
    return node.emit(GatherElementsOp, value, positions, axis=axis)
