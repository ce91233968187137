"""Places along axes, and elements that lie at computed places of an axis."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.indexing import GatherElementsOp
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.support.symbols import Sizes


def positions_along(node: TorchNode, sizes: Sizes, axis: int) -> SSAValue:
    """The place of each element along an axis, in i64."""
    shape = tuple(size if other == axis else 1 for other, size in enumerate(sizes))
    return node.expanded(node.reshaped(iota(node, sizes[axis]), shape), sizes)


def at_positions(node: TorchNode, value: SSAValue, positions: SSAValue, axis: int) -> SSAValue:
    """The elements of a value at places of an axis, which has size 1 there."""
    return node.emit(GatherElementsOp, value, positions, axis=axis)
