"""PyTorch's operators that gather elements at indices."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, ui8
from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.dialects.glow_high.indexing import GatherElementsOp, GatherNDOp, GatherOp
from glow_mlir.dialects.shapes import broadcast, element_of, rank_of, sizes_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import transposed
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.frontends.torch.selection import mask_indices
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes


def as_indices(node: TorchNode, value: SSAValue) -> SSAValue:
    """Convert indices to i64, unless they are i32 or i64."""
    return value if element_of(value) in (i32, i64) else node.cast(value, i64)


@dataclass(frozen=True)
class AdvancedIndex:
    """
    Joint indices of several axes of a value, which broadcast to `sizes`.

    `order` lists the axes of the value, the indexed ones first; `position` is the position of the indices' axes among
    the other axes of the result.
    """

    indices: tuple[SSAValue, ...]
    order: tuple[int, ...]
    sizes: Sizes
    position: int

    @staticmethod
    def of(node: TorchNode, value: SSAValue, indices: Sequence[SSAValue | None]) -> AdvancedIndex:
        """Convert PyTorch's indices; a mask becomes indices of its true elements, one vector for each of its axes."""
        spread: list[SSAValue | None] = []
        for item in indices:
            spread += mask_indices(node, item) if item is not None and is_mask(item) else [item]
        given = {axis: as_indices(node, item) for axis, item in enumerate(spread) if item is not None}
        axes = tuple(given)
        sizes: Sizes = ()
        for item in given.values():
            sizes = broadcast(sizes, sizes_of(item))
        order = (*axes, *(axis for axis in range(rank_of(value)) if axis not in given))
        are_neighbours = axes == tuple(range(axes[0], axes[0] + len(axes)))
        return AdvancedIndex(tuple(given.values()), order, sizes, axes[0] if are_neighbours else 0)

    @property
    def count(self) -> int:
        """The number of indexed axes."""
        return len(self.indices)

    def rows(self, node: TorchNode) -> SSAValue:
        """The indices of each element, as rows."""
        wide = [node.cast(item, i64) for item in self.indices]
        columns = [node.reshaped(node.expanded(item, self.sizes), (*self.sizes, 1)) for item in wide]
        return columns[0] if len(columns) == 1 else node.emit(ConcatOp, columns, axis=len(self.sizes))

    def result_order(self, rank: int) -> tuple[int, ...]:
        """The permutation that moves the indices' axes of a result from the front to their position."""
        own, outer = len(self.sizes), self.position
        rest = range(own, rank)
        return (*rest[:outer], *range(own), *rest[outer:])


def is_mask(indices: SSAValue) -> bool:
    """Whether indices are a mask: truth values, or u8 as in old PyTorch programs."""
    return is_bool(element_of(indices)) or element_of(indices) == ui8


@torch_operator("index.Tensor", "_unsafe_index.Tensor")
def index(node: TorchNode, value: SSAValue, indices: Sequence[SSAValue | None]) -> SSAValue:
    """The elements at joint indices of one or several axes; axes without indices are kept."""
    if all(item is None for item in indices):
        return value
    found = AdvancedIndex.of(node, value, indices)
    for axis, size in enumerate(found.sizes):
        node.binds(size, found.position + axis)
    if 0 in found.sizes or 0 in sizes_of(value):
        rest = [sizes_of(value)[axis] for axis in found.order[found.count :]]
        sizes = (*rest[: found.position], *found.sizes, *rest[found.position :])
        return node.splat(0, element_of(value), sizes)
    if found.count == 1:
        return node.emit(GatherOp, value, found.indices[0], axis=found.order[0])
    front = transposed(node, value, found.order)
    result = node.emit(GatherNDOp, front, found.rows(node))
    return transposed(node, result, found.result_order(rank_of(result)))


@torch_operator("embedding.default")
def embedding(node: TorchNode, weight: SSAValue, indices: SSAValue, *_: object) -> SSAValue:
    """Rows of a table."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    return node.emit(GatherOp, weight, as_indices(node, indices), axis=0)


@torch_operator("gather.default")
def gather(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, **_: object) -> SSAValue:
    """Gather elements at indices along an axis."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    count = max(rank_of(value), 1)
    value, indices = (node.reshaped(item, sizes_of(item) or (1,)) for item in (value, indices))
    return node.reshaped(node.emit(GatherElementsOp, value, as_indices(node, indices), axis=axis_of(axis, count)))


@torch_operator("index_select.default")
def index_select(node: TorchNode, value: SSAValue, axis: int, indices: SSAValue) -> SSAValue:
    """Gather slices at indices of an axis."""
    if 0 in node.sizes:
        return node.splat(0, node.element, node.sizes)
    value, indices = (node.reshaped(item, sizes_of(item) or (1,)) for item in (value, indices))
    found = node.emit(GatherOp, value, as_indices(node, indices), axis=axis_of(axis, rank_of(value)))
    return node.reshaped(found)
