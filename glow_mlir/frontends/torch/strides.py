"""PyTorch's strided views: diagonals, windows, and arbitrary strides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.indexing import GatherNDOp, GatherOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.slices import iota
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat, restored, scatter_slices, taken, transposed
from glow_mlir.frontends.torch.layouts import memory_order
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize, are_numbers, product_of


@dataclass(frozen=True)
class Diagonal:
    """A diagonal of matrices: their axes, and the positions of its elements in a flattened matrix."""

    order: tuple[int, ...]
    """The axes of the value; the last two are those of the matrices."""
    rows: Size
    columns: Size
    first: Size
    count: Size

    @staticmethod
    def of(node: TorchNode, sizes: Sizes, offset: int, one: int, other: int) -> Diagonal:
        """The diagonal at an offset, above the main one if the offset is positive."""
        axes = axis_of(one, len(sizes)), axis_of(other, len(sizes))
        rows, columns = (sizes[axis] for axis in axes)
        order = (*(axis for axis in range(len(sizes)) if axis not in axes), *axes)
        if isinstance(rows, SymbolicSize) or isinstance(columns, SymbolicSize):
            if rows != columns or offset:
                raise node.unsupported("a diagonal of sizes that are known at run time only is not supported")
            return Diagonal(order, rows, columns, 0, rows)
        count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
        return Diagonal(order, rows, columns, offset if offset >= 0 else -offset * columns, max(count, 0))

    def lines(self, node: TorchNode, value: SSAValue) -> SSAValue:
        """Flatten each matrix."""
        found = transposed(node, value, self.order)
        return node.reshaped(found, (*sizes_of(found)[:-2], self.rows * self.columns))


@torch_operator("diagonal.default", "diagonal_copy.default")
def diagonal(node: TorchNode, value: SSAValue, offset: int = 0, one: int = 0, other: int = 1) -> SSAValue:
    """The elements of a diagonal of matrices, along a new last axis."""
    found = Diagonal.of(node, sizes_of(value), offset, one, other)
    if found.count == 0:
        return node.splat(0, node.element, node.sizes)
    lines = found.lines(node, value)
    outer, position = sizes_of(lines)[:-1], rank_of(lines) - 1
    if isinstance(found.columns, SymbolicSize) or isinstance(found.count, SymbolicSize):
        matrix = node.reshaped(lines, (*outer, found.rows, found.columns))
        return _by_rows(node, matrix, found.count)
    assert isinstance(found.first, int)
    step = found.columns + 1
    end = found.first + (found.count - 1) * step + 1
    starts, ends = (*(0 for _ in outer), found.first), (*outer, end)
    steps = [1] * position + [step]
    return node.emit(SliceOp, lines, starts=starts, ends=ends, steps=steps)


def _by_rows(node: TorchNode, matrices: SSAValue, count: Size) -> SSAValue:
    """The main diagonal of square matrices whose size is known at run time only."""
    last = rank_of(matrices)
    front = moved_axis(node, moved_axis(node, matrices, last - 1, 0), last - 1, 1)
    column = node.reshaped(iota(node, count), (count, 1))
    found = node.emit(GatherNDOp, front, node.emit(ConcatOp, [column, column], axis=1))
    return moved_axis(node, found, 0, last - 2)


@torch_operator("diagonal_scatter.default")
def diagonal_scatter(
    node: TorchNode, value: SSAValue, part: SSAValue, offset: int = 0, one: int = 0, other: int = 1
) -> SSAValue:
    """Replace the elements on a diagonal of matrices."""
    found = Diagonal.of(node, sizes_of(value), offset, one, other)
    if found.count == 0:
        return value
    if not isinstance(found.columns, int) or not isinstance(found.count, int) or not isinstance(found.first, int):
        raise node.unsupported("replacing a diagonal whose size is known at run time only is not supported")
    lines = found.lines(node, value)
    positions = node.constant(found.first + (found.columns + 1) * np.arange(found.count, dtype=np.int64))
    result = scatter_slices(node, lines, rank_of(lines) - 1, positions, node.cast(part, node.element))
    sizes = sizes_of(value)
    return restored(node, node.reshaped(result, tuple(sizes[axis] for axis in found.order)), found.order)


@torch_operator("unfold.default", "unfold_copy.default")
def unfold(node: TorchNode, value: SSAValue, axis: int, size: int, step: int) -> SSAValue:
    """Sliding windows of an axis, whose elements are along a new last axis."""
    if not rank_of(value):
        return node.reshaped(value) if size else node.splat(0, node.element, node.sizes)
    axis = axis_of(axis, rank_of(value))
    count = node.sizes[axis]
    if count == 0 or size == 0:
        return node.splat(0, node.element, node.sizes)
    if isinstance(count, int):
        positions = node.constant(np.arange(count, dtype=np.int64)[:, None] * step + np.arange(size))
    else:
        first = node.reshaped(iota(node, count, step), (count, 1))
        positions = node.emit(AddOp, first, node.constant(np.arange(size, dtype=np.int64)[None]))
    windows = node.emit(GatherOp, value, positions, axis=axis)
    return moved_axis(node, windows, axis + 1, rank_of(windows) - 1)


def offsets_in_memory(sizes: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray:
    """The memory offset of each element of a tensor."""
    found = np.full(tuple(sizes), offset, np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        found += (np.arange(size, dtype=np.int64) * stride).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    return found


def strided_offsets(
    node: TorchNode, value: SSAValue, sizes: Sequence[Size], strides: Sequence[Size], offset: Size | None
) -> np.ndarray:
    """
    For each element of a strided view of the first operand, `value`, its index in the flattened operand.

    Raises `UnsupportedError` if the view is known at run time only, or may exceed the operand's elements.
    """
    traced = node.traced_operand(0)
    if offset is not None and traced.view is not None:
        raise node.unsupported("an offset from the start of an input's memory is not supported")
    first = traced.offset if offset is None else offset
    if not are_numbers((traced.offset, first, *sizes, *strides)):
        raise node.unsupported("strides that are known at run time only are not supported")
    begin = _number(traced.offset)
    wanted = offsets_in_memory([_number(size) for size in sizes], [_number(step) for step in strides], _number(first))
    if not wanted.size:
        return wanted
    own = _own_positions(node, value, begin)
    known = np.full(max(own.max(initial=0), wanted.max()) + 1, -1, np.int64)
    known[own.reshape(-1)] = np.arange(own.size)
    if (known[wanted] < 0).any():
        raise node.unsupported("a view of memory beyond the elements of its operand is not supported")
    return known[wanted]


def _own_positions(node: TorchNode, value: SSAValue, begin: int) -> np.ndarray:
    """The memory offsets of the first operand's elements that exist for all values of its sizes."""
    traced = node.traced_operand(0)
    if are_numbers((*traced.sizes, *traced.strides)):
        return offsets_in_memory(*traced.hint, begin)
    if memory_order(*traced.hint) != tuple(range(rank_of(value))):
        raise node.unsupported("strides that are known at run time only are not supported")
    return begin + np.arange(smallest(product_of(sizes_of(value))))


def _number(size: object) -> int:
    assert isinstance(size, int)
    return size


@torch_operator("as_strided.default", "as_strided_copy.default")
def as_strided(
    node: TorchNode, value: SSAValue, sizes: Sequence[Size], strides: Sequence[Size], offset: Size | None = None
) -> SSAValue:
    """View the memory of a tensor with other strides."""
    return taken(node, flat(node, value), strided_offsets(node, value, sizes, strides, offset))


@torch_operator("as_strided_scatter.default")
def as_strided_scatter(
    node: TorchNode,
    value: SSAValue,
    part: SSAValue,
    sizes: Sequence[Size],
    strides: Sequence[Size],
    offset: Size | None = None,
) -> SSAValue:
    """Replace the elements of a strided view of a tensor's memory."""
    positions = strided_offsets(node, value, sizes, strides, offset)
    indices = node.constant(positions.reshape(-1))
    updates = flat(node, node.expanded(node.cast(part, node.element), positions.shape))
    return node.reshaped(scatter_slices(node, flat(node, value), 0, indices, updates))
