"""Building blocks of indexing operators: gather parts of values, and replace parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, TransposeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterElementsOp, ScatterNDOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.torch.layouts import inverse
from glow_mlir.frontends.torch.node import TorchNode
from glow_mlir.support.symbols import Size, product_of


def flat(node: TorchNode, value: SSAValue) -> SSAValue:
    """Flatten a value to one axis."""
    return node.reshaped(value, (product_of(sizes_of(value)),))


def transposed(node: TorchNode, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Permute the axes of a value."""
    same = list(order) == list(range(len(order)))
    return value if same else node.emit(TransposeOp, value, permutation=tuple(order))


def restored(node: TorchNode, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Undo `transposed`."""
    return transposed(node, value, inverse(order))


def taken(node: TorchNode, value: SSAValue, positions: np.ndarray) -> SSAValue:
    """The elements of a vector at known positions."""
    wanted = positions.reshape(-1)
    if wanted.size and (wanted == np.arange(wanted[0], wanted[0] + wanted.size)).all():
        part = cut(node, value, {0: (int(wanted[0]), int(wanted[0]) + wanted.size)})
        return node.reshaped(part, positions.shape)
    if not wanted.size:
        return node.splat(0, element_of(value), positions.shape)
    return node.emit(GatherOp, value, node.constant(positions.astype(np.int64)), axis=0)


def with_part(node: TorchNode, value: SSAValue, part: SSAValue, axis: int, first: Size, last: Size) -> SSAValue:
    """Replace the part between two positions of an axis."""
    size = sizes_of(value)[axis]
    before, after = (cut(node, value, {axis: bounds}) for bounds in ((0, first), (last, size)))
    parts = [item for item in (before, part, after) if sizes_of(item)[axis] != 0]
    return parts[0] if len(parts) == 1 else node.emit(ConcatOp, parts, axis=axis) if parts else value


def calculated(node: TorchNode, value: SSAValue, reduction: str) -> SSAValue:
    """Convert truth values to integers for a reduction; its result is converted back."""
    return node.cast(value, i64) if reduction != "none" and is_bool(element_of(value)) else value


def scatter_rows(
    node: TorchNode, value: SSAValue, rows: SSAValue, updates: SSAValue, reduction: str = "none"
) -> SSAValue:
    """Replace the slices at rows of indices, or combine them with the updates."""
    if 0 in sizes_of(updates) or 0 in sizes_of(value):
        return value
    element = element_of(value)
    operands = (calculated(node, item, reduction) for item in (value, updates))
    into, those = operands
    return node.cast(node.emit(ScatterNDOp, into, rows, those, reduction=reduction), element)


def scatter_elements(
    node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, updates: SSAValue, reduction: str = "none"
) -> SSAValue:
    """Replace elements at indices along an axis, or combine them with the updates."""
    if 0 in sizes_of(indices) or 0 in sizes_of(value):
        return value
    element = element_of(value)
    into, those = (calculated(node, item, reduction) for item in (value, updates))
    return node.cast(node.emit(ScatterElementsOp, into, indices, those, axis=axis, reduction=reduction), element)


def scatter_slices(
    node: TorchNode, value: SSAValue, axis: int, indices: SSAValue, updates: SSAValue, reduction: str = "none"
) -> SSAValue:
    """Replace the slices at a vector of indices along an axis, or combine them with the updates."""
    rows = node.reshaped(indices, (*sizes_of(indices), 1))
    into, those = (moved_axis(node, item, axis, 0) for item in (value, updates))
    return moved_axis(node, scatter_rows(node, into, rows, those, reduction), 0, axis)
