"""PyTorch's operators whose result sizes depend on the values of operands."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import EqualOp, LessOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import NotOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp
from glow_mlir.dialects.glow_high.selection import NonZeroOp, UniqueOp
from glow_mlir.dialects.shapes import broadcast, element_of, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.frontends.builder.axis_order import moved_axis
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.builder.slices import cut, iota, scalar
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.index_operators import flat
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.support.symbols import Size, Sizes, product_of


@torch_operator("nonzero_static.default")
def nonzero_static(node: TorchNode, value: SSAValue, *, size: int, fill_value: int = -1) -> SSAValue:
    """The positions of the first `size` nonzero elements, padded with `fill_value`."""
    fill = node.splat(fill_value, i64)
    if 0 in node.sizes or 0 in sizes_of(value) or not rank_of(value):
        return node.splat(fill_value, i64, node.sizes)
    positions, count = node.emit_all(NonZeroOp, value)
    most = shape_of(positions)[1]
    widths = [(0, 0), (0, size - most)]
    columns = pad_value(node, positions, widths, "constant", fill)
    inside = node.emit(LessOp, iota(node, size), count)
    return node.emit(TransposeOp, node.emit(WhereOp, inside, columns, fill), permutation=(1, 0))


def positions_of(node: TorchNode, mask: SSAValue, least: int = 0) -> tuple[SSAValue, Size]:
    """The positions of nonzero elements, one per column, and their number, at least `least`; the rank is not 0."""

    def found() -> SSAValue:
        if 0 in sizes_of(mask):
            return node.splat(0, i64, (rank_of(mask), 0))
        positions, count = node.emit_all(NonZeroOp, mask)
        return cut(node, positions, {1: (0, node.bind_symbol(count, shape_of(positions)[1], least))})

    columns = node.builder.numbering.once(("places", least, node.builder.block), mask, found)
    return columns, sizes_of(columns)[1]


def mask_indices(node: TorchNode, mask: SSAValue, least: int = 0) -> list[SSAValue]:
    """The indices of a mask's true elements, a vector for each axis; at least `least` elements are true."""
    columns, count = positions_of(node, mask, least)
    return [node.reshaped(cut(node, columns, {0: (axis, axis + 1)}), (count,)) for axis in range(rank_of(mask))]


@torch_operator("nonzero.default")
def nonzero(node: TorchNode, value: SSAValue) -> SSAValue:
    """The positions of all nonzero elements, one per row."""
    columns, count = positions_of(node, node.reshaped(value, sizes_of(value) or (1,)))
    node.binds(count)
    if not rank_of(value):
        return node.splat(0, i64, (count, 0))
    return node.emit(TransposeOp, columns, permutation=(1, 0))


@torch_operator("masked_select.default")
def masked_select(node: TorchNode, value: SSAValue, mask: SSAValue) -> SSAValue:
    """The elements where a mask holds, as a vector."""
    sizes = broadcast(sizes_of(value), sizes_of(mask))
    elements, chosen = (flat(node, node.expanded(item, sizes)) for item in (value, mask))
    (positions,) = mask_indices(node, chosen)
    node.binds(sizes_of(positions)[0])
    if 0 in sizes:
        return node.splat(0, element_of(value), sizes_of(positions))
    return node.emit(GatherOp, elements, positions, axis=0)


# Unique elements


@torch_operator("_unique2.default")
def unique(
    node: TorchNode, value: SSAValue, sorted_: bool = True, inverse: bool = False, counts: bool = False
) -> list[SSAValue]:
    """The sorted unique elements; on request, the inverse mapping and the numbers of occurrences."""
    rows = node.reshaped(value, (product_of(sizes_of(value)), 1))
    return _unique(node, rows, sizes_of(value), inverse, counts, axis=None)


@torch_operator("unique_dim.default")
def unique_slices(
    node: TorchNode, value: SSAValue, axis: int, sorted_: bool = True, inverse: bool = False, counts: bool = False
) -> list[SSAValue]:
    """The sorted unique slices of an axis; the inverse mapping; and the numbers of occurrences."""
    axis = axis_of(axis, rank_of(value))
    front = moved_axis(node, value, axis, 0)
    rows = node.reshaped(front, (sizes_of(front)[0], product_of(sizes_of(front)[1:])))
    return _unique(node, rows, sizes_of(front)[:1], True, True, axis, sizes_of(front)[1:])


def _unique(
    node: TorchNode,
    rows: SSAValue,
    positions: Sizes,
    inverse: bool,
    counts: bool,
    axis: int | None,
    inner: Sizes = (),
) -> list[SSAValue]:
    """
    The unique rows, reshaped to `inner`; the inverse mapping, reshaped to `positions`; the numbers of occurrences.
    """
    element = element_of(rows)
    given = node.cast(rows, i64) if is_bool(element) else rows
    if 0 in sizes_of(rows):
        raise node.unsupported("unique elements of an empty tensor are not supported")
    found, _, numbers, occurrences, count = node.emit_all(UniqueOp, given, sorted=True)
    size = node.bind_symbol(count, largest(sizes_of(rows)[0]))
    node.binds(size, 0 if axis is None else axis)
    kept = node.reshaped(cut(node, node.cast(found, element), {0: (0, size)}), (size, *inner))
    none = node.splat(0, i64, (0,))
    return [
        kept if axis is None else moved_axis(node, kept, 0, axis),
        node.reshaped(numbers, positions) if inverse else none,
        cut(node, occurrences, {0: (0, size)}) if counts else none,
    ]


@torch_operator("unique_consecutive.default")
def unique_consecutive(
    node: TorchNode, value: SSAValue, inverse: bool = False, counts: bool = False, axis: int | None = None
) -> list[SSAValue]:
    """The first elements of runs of equal elements; the run of each element; and the lengths of runs."""
    if axis is not None and rank_of(value) != 1:
        raise node.unsupported("comparing consecutive slices of an axis is not supported")
    elements = flat(node, value)
    (size,) = sizes_of(elements)
    if size == 0:
        raise node.unsupported("unique elements of an empty tensor are not supported")
    ahead, behind = (cut(node, elements, {0: bounds}) for bounds in ((0, size - 1), (1, size)))
    differs = node.emit(NotOp, node.emit(EqualOp, ahead, behind))
    begins = node.emit(ConcatOp, [node.splat(1, i1, (1,)), differs], axis=0)
    (positions,) = mask_indices(node, begins, least=1)
    (number,) = sizes_of(positions)
    node.binds(number)
    numbers = node.emit(CumSumOp, node.cast(begins, i64), axis=0)
    ends = node.emit(
        ConcatOp, [cut(node, positions, {0: (1, number)}), node.reshaped(scalar(node, size), (1,))], axis=0
    )
    none = node.splat(0, i64, (0,))
    return [
        node.emit(GatherOp, elements, positions, axis=0),
        node.reshaped(node.emit(SubOp, numbers, node.splat(1, i64)), sizes_of(value)) if inverse else none,
        node.emit(SubOp, ends, positions) if counts else none,
    ]
