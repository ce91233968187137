"""PyTorch's operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, number_width
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp, TileOp, TransposeOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.frontends.builder.bit_casts import bit_cast
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.builder.slices import cut, part_of
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode, axis_of
from glow_mlir.frontends.torch.traced_graph import Word
from glow_mlir.support.symbols import Size, are_numbers, product_of


@torch_operator(
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "squeeze.default",
    "squeeze.dim",
    "squeeze.dims",
    "unsqueeze.default",
    "view_copy.default",
    "squeeze_copy.default",
    "squeeze_copy.dim",
    "squeeze_copy.dims",
    "unsqueeze_copy.default",
)
def view(node: TorchNode, value: SSAValue, *_: Any) -> SSAValue:
    """Reshape to the traced sizes."""
    return node.reshaped(value)


@torch_operator("expand.default")
def expand(node: TorchNode, value: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Broadcast to the traced sizes."""
    return node.expanded(value)


@torch_operator("permute.default", "permute_copy.default")
def permute(node: TorchNode, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Permute the axes."""
    count = rank_of(value)
    return node.emit(TransposeOp, value, permutation=[axis_of(axis, count) for axis in axes])


@torch_operator("transpose.int", "t.default", "transpose_copy.int", "t_copy.default")
def transpose(node: TorchNode, value: SSAValue, one: int = 0, other: int = 1) -> SSAValue:
    """Swap two axes."""
    count = rank_of(value)
    if count < 2:
        return value
    order = list(range(count))
    one, other = axis_of(one, count), axis_of(other, count)
    order[one], order[other] = other, one
    return node.emit(TransposeOp, value, permutation=order)


@torch_operator("cat.default")
def cat(node: TorchNode, values: Sequence[SSAValue], axis: int = 0) -> SSAValue:
    """Concatenate values; values of shape [0] are skipped, as in PyTorch."""
    kept = [node.cast(value, node.element) for value in values if sizes_of(value) != (0,) or len(node.sizes) == 1]
    if len(kept) == 1:
        return kept[0]
    return node.emit(ConcatOp, kept, axis=axis_of(axis, len(node.sizes)))


@torch_operator("stack.default")
def stack(node: TorchNode, values: Sequence[SSAValue], axis: int = 0) -> SSAValue:
    """Stack values along a new axis."""
    position = axis_of(axis, len(node.sizes))
    parts = [
        node.reshaped(node.cast(value, node.element), (*sizes_of(value)[:position], 1, *sizes_of(value)[position:]))
        for value in values
    ]
    return parts[0] if len(parts) == 1 else node.emit(ConcatOp, parts, axis=position)


END = (1 << 63) - 1
"""The end of slices that reach to the end of the axis."""


@torch_operator("slice.Tensor")
def slice_(
    node: TorchNode, value: SSAValue, axis: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1
) -> SSAValue:
    """Every `step`-th element from `start` up to, but not including, `end`; negative bounds count from the end."""
    sizes = sizes_of(value)
    axis = axis_of(axis, len(sizes))
    first, last = slice_bounds(node, sizes[axis], start, end)
    if step == 1:
        return cut(node, value, {axis: (first, last)})
    return _strided(node, value, axis, first, last, step)


def _strided(node: TorchNode, value: SSAValue, axis: int, first: Size, last: Size, step: int) -> SSAValue:
    sizes = sizes_of(value)
    starts: list[Size] = [0] * len(sizes)
    ends, steps = list(sizes), [1] * len(sizes)
    starts[axis], ends[axis], steps[axis] = first, last, step
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


def slice_bounds(node: TorchNode, size: Size, start: Size | None, end: Size | None) -> tuple[Size, Size]:
    """Start and end of a slice by PyTorch's rules; raises `UnsupportedError` if they depend on symbols."""
    first = _bound(node, 0 if start is None else start, size)
    last = size if end is None or end == END else _bound(node, end, size)
    if smallest(last - first) < 0:
        if largest(last - first) > 0:
            raise node.unsupported(f"it is unknown whether {last} is after {first}")
        last = first
    return first, last


def _bound(node: TorchNode, bound: Size, size: Size) -> Size:
    if largest(bound) < 0:
        bound = bound + size
    elif smallest(bound) < 0:
        raise node.unsupported(f"it is unknown whether {bound} is negative")
    if smallest(bound) >= largest(size) or smallest(bound - size) >= 0:
        return size
    if largest(bound - size) <= 0:
        return bound if smallest(bound) >= 0 else 0
    raise node.unsupported(f"it is unknown whether {bound} is within {size}")


@torch_operator("narrow_copy.default")
def narrow(node: TorchNode, value: SSAValue, axis: int, start: Size, length: Size) -> SSAValue:
    """`length` elements of an axis from `start` on."""
    axis = axis_of(axis, rank_of(value))
    first = start + sizes_of(value)[axis] if largest(start) < 0 else start
    return cut(node, value, {axis: (first, first + length)})


@torch_operator("select.int")
def select(node: TorchNode, value: SSAValue, axis: int, index: Size) -> SSAValue:
    """The slice at an index of an axis, without that axis."""
    sizes = sizes_of(value)
    axis = axis_of(axis, len(sizes))
    if largest(index) < 0:
        index = index + sizes[axis]
    part = cut(node, value, {axis: (index, index + 1)})
    return node.reshaped(part)


@torch_operator(
    "split_with_sizes.default",
    "split.Tensor",
    "split_with_sizes_copy.default",
    "unsafe_split.Tensor",
    "unsafe_split_with_sizes.default",
)
def split(node: TorchNode, value: SSAValue, parts: Size | Sequence[Size], axis: int = 0) -> list[SSAValue]:
    """Split an axis into consecutive parts."""
    sizes = sizes_of(value)
    axis = axis_of(axis, len(sizes))
    found: list[SSAValue] = []
    position: Size = 0
    for number in range(len(node.expected)):
        length = node.result(number)[1][axis]
        found.append(cut(node, value, {axis: (position, position + length)}))
        position = position + length
    return found


@torch_operator("unbind.int", "unbind_copy.int")
def unbind(node: TorchNode, value: SSAValue, axis: int = 0) -> list[SSAValue]:
    """The slices at each index of an axis, without that axis."""
    position = axis_of(axis, rank_of(value))
    return [part_of(node, value, number, position) for number in range(len(node.expected))]


@torch_operator("flip.default")
def flip(node: TorchNode, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Reverse the elements along axes."""
    sizes = sizes_of(value)
    reversed_ = {axis_of(axis, len(sizes)) for axis in axes} if sizes else set[int]()
    if not reversed_:
        return value
    positions = range(len(sizes))
    starts = [sizes[axis] - 1 if axis in reversed_ else 0 for axis in positions]
    ends = [-1 if axis in reversed_ else sizes[axis] for axis in positions]
    steps = [-1 if axis in reversed_ else 1 for axis in positions]
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


@torch_operator("repeat.default")
def repeat(node: TorchNode, value: SSAValue, counts: Sequence[Size]) -> SSAValue:
    """Repeat the value along each axis."""
    sizes = (*(1,) * (len(counts) - rank_of(value)), *sizes_of(value))
    found = node.reshaped(value, sizes)
    if are_numbers(counts):
        return found if set(counts) <= {1} else node.emit(TileOp, found, repeats=counts)
    split = node.reshaped(found, tuple(part for size in sizes for part in (1, size)))
    pairs = tuple(part for count, size in zip(counts, sizes, strict=True) for part in (count, size))
    return node.reshaped(node.expanded(split, pairs))


@torch_operator("copy.default")
def copy(node: TorchNode, _: SSAValue, source: SSAValue, __: bool = False) -> SSAValue:
    """The elements of `source`, converted and broadcast to the element type and sizes of the first operand."""
    return node.expanded(node.cast(source, node.element))


@torch_operator("view.dtype")
def view_as_type(node: TorchNode, value: SSAValue, _: Word) -> SSAValue:
    """Reinterpret the bits as another element type; the last axis has the numbers in a wider one side by side."""
    if is_bool(element_of(value)) or is_bool(node.element):
        raise node.unsupported("a view of the bits of truth values is not supported")
    source, wanted = number_width(element_of(value)), number_width(node.element)
    if wanted > source:
        value = node.reshaped(value, (*node.sizes, wanted // source))
    return node.reshaped(bit_cast(node, value, node.element), node.sizes)


@torch_operator("resize.default")
def resize(node: TorchNode, value: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """The first elements in other sizes; elements that PyTorch leaves undefined are 0."""
    given, wanted = product_of(sizes_of(value)), product_of(node.sizes)
    if not isinstance(given, int) or not isinstance(wanted, int):
        raise node.unsupported("resizing is not supported for sizes known at run time only")
    elements = pad_value(node, node.reshaped(value, (given,)), [(0, wanted - given)], "constant", node.tensor(0))
    return node.reshaped(elements)
