"""Constants, shapes, and parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from glow_mlir.constants.storage import dense_array
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ExpandOp, PadOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp, DynamicUpdateSliceOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.stablehlo.indexing import whole_number
from glow_mlir.frontends.stablehlo.node import (
    StablehloNode,
    Value,
    of_parts,
    part_type,
    parts_of_array,
    stablehlo_operator,
)
from glow_mlir.support.symbols import Sizes


@stablehlo_operator("constant", "chlo.constant")
def constant(node: StablehloNode) -> Value:
    """A constant; one of equal elements is a splat."""
    if node.op in node.program.resources:
        parts = map(node.constant, parts_of_array(node.program.resources[node.op]))
        return of_parts(list(parts))
    value = node.properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    element = node.element()
    if (part := part_type(element)) is not None:
        pairs = np.array(list(value.get_values()), numpy_dtype(part))
        parts = pairs.reshape(-1, 2).T.reshape(2, *node.static_shape())
        return node.complex(*map(node.constant, parts))
    array = dense_array(cast("DenseIntOrFPElementsAttr[Any]", value), node.declared())
    if array.size > 1 and value.is_splat():
        return node.splat(array.reshape(-1)[0].item(), node.element(), node.static_shape())
    return node.constant(array)


@stablehlo_operator("iota")
def iota(node: StablehloNode) -> Value:
    """The positions along a dimension."""
    if (part := part_type(node.element())) is not None:
        real = counted(node, node.static_shape(), node.integer("iota_dimension"), part)
        return node.complex(real, expanded(node, node.splat(0, real), sizes_of(real)))
    return counted(node, node.static_shape(), node.integer("iota_dimension"))


def counted(node: StablehloNode, shape: Sequence[int], dimension: int, element: Attribute | None = None) -> SSAValue:
    """
    A tensor whose elements are their positions along a dimension.

    Its element type is by default that of the result.
    """
    node.check_size(*shape)
    count = np.arange(shape[dimension]).astype(numpy_dtype(node.element() if element is None else element))
    one = node.constant(count.reshape([-1 if axis == dimension else 1 for axis in range(len(shape))]))
    return expanded(node, one, tuple(shape))


def expanded(node: StablehloNode, value: SSAValue, shape: Sizes) -> SSAValue:
    """A value repeated along axes of one element, unless it has the shape."""
    return value if sizes_of(value) == tuple(shape) else node.emit(ExpandOp, value, shape=tuple(shape))


def transposed(node: StablehloNode, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    """A value with its axes in another order."""
    if list(permutation) == sorted(permutation):
        return value
    return node.emit(TransposeOp, value, permutation=tuple(permutation))


@stablehlo_operator("broadcast_in_dim", moves=True)
def broadcast_in_dim(node: StablehloNode) -> SSAValue:
    """A tensor whose axes become given axes of a larger one, along which it is repeated."""
    return broadcast(node, node.input(), node.integers("broadcast_dimensions"), node.static_shape())


def broadcast(node: StablehloNode, value: SSAValue, dimensions: Sequence[int], shape: Sizes) -> SSAValue:
    """A value whose axes become `dimensions` of `shape`, along which it is repeated."""
    order = sorted(range(len(dimensions)), key=lambda axis: dimensions[axis])
    value = transposed(node, value, order)
    own = dict(zip(sorted(dimensions), sizes_of(value), strict=True))
    return expanded(node, node.reshaped(value, [own.get(axis, 1) for axis in range(len(shape))]), shape)


@stablehlo_operator("broadcast", moves=True)
def broadcast_front(node: StablehloNode) -> SSAValue:
    """A tensor that is repeated along new axes in front."""
    shape, own = node.static_shape(), rank_of(node.input())
    return broadcast(node, node.input(), range(len(shape) - own, len(shape)), shape)


@stablehlo_operator("reshape", moves=True)
def reshape(node: StablehloNode) -> SSAValue:
    """The same elements in another shape."""
    return node.reshaped(node.input(), node.static_shape())


@stablehlo_operator("transpose", moves=True)
def transpose(node: StablehloNode) -> SSAValue:
    """The axes in another order."""
    return transposed(node, node.input(), node.integers("permutation"))


@stablehlo_operator("concatenate", moves=True)
def concatenate(node: StablehloNode) -> SSAValue:
    """Tensors one after the other along an axis."""
    return node.emit(ConcatOp, node.inputs(), axis=node.integer("dimension"))


@stablehlo_operator("slice", moves=True)
def slice_(node: StablehloNode) -> SSAValue:
    """Every so many elements of a part of each axis."""
    value = node.input()
    starts, ends, steps = (node.integers(name) for name in ("start_indices", "limit_indices", "strides"))
    if not any(starts) and tuple(ends) == sizes_of(value) and set(steps) <= {1}:
        return value
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


@stablehlo_operator("reverse", moves=True)
def reverse(node: StablehloNode) -> SSAValue:
    """The elements along some axes in the opposite order."""
    return reversed_along(node, node.input(), node.integers("dimensions"))


def reversed_along(node: StablehloNode, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The elements of a value along some axes in the opposite order."""
    shape = sizes_of(value)
    axes = [axis for axis in axes if shape[axis] != 1]
    if not axes:
        return value
    bounds = [(size - 1, -1, -1) if axis in axes else (0, size, 1) for axis, size in enumerate(shape)]
    starts, ends, steps = zip(*bounds, strict=True)
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


@stablehlo_operator("pad", moves=True)
def pad(node: StablehloNode) -> SSAValue:
    """Elements in front of, behind, and between those of each axis; negative widths in front and behind cut off."""
    value, fill = node.inputs()
    low, high, interior = (
        node.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    for axis, count in enumerate(interior):
        value = spread(node, value, fill, axis, count)
    return pad_value(node, value, list(zip(low, high, strict=True)), "constant", fill)


def spread(node: StablehloNode, value: SSAValue, fill: SSAValue, axis: int, count: int) -> SSAValue:
    """A value with `count` elements `fill` between those along an axis."""
    shape = sizes_of(value)
    if not count or shape[axis] in (0, 1):
        return value
    apart = node.reshaped(value, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    pads = [0] * (2 * rank_of(apart))
    pads[rank_of(apart) + axis + 1] = count
    filled = node.emit(PadOp, apart, fill, pads=pads, mode="constant")
    size = shape[axis] * (count + 1)
    joined = node.reshaped(filled, (*shape[:axis], size, *shape[axis + 1 :]))
    return pad_value(node, joined, [(0, -count if at == axis else 0) for at in range(len(shape))], "constant", None)


@stablehlo_operator("dynamic_slice", moves=True)
def dynamic_slice(node: StablehloNode) -> SSAValue:
    """A part of known size, whose start along each axis is an operand."""
    value, starts = node.input(), node.inputs(1)
    for axis, size in enumerate(node.integers("slice_sizes")):
        value = part(node, value, starts[axis], axis, size)
    return value


def part(node: StablehloNode, value: SSAValue, start: SSAValue, axis: int, size: int) -> SSAValue:
    """`size` elements along an axis, from a start that is limited to where they fit."""
    if sizes_of(value)[axis] == size:
        return value
    return node.emit(DynamicSliceOp, value, whole_number(node, start), axis=axis, size=size)


@stablehlo_operator("dynamic_update_slice", moves=True)
def dynamic_update_slice(node: StablehloNode) -> SSAValue:
    """A tensor with a part replaced, whose start along each axis is an operand."""
    value, update = node.inputs(0, 2)
    own, new = sizes_of(value), sizes_of(update)
    return updated(node, value, update, node.inputs(2), [axis for axis in range(len(own)) if own[axis] != new[axis]])


def updated(
    node: StablehloNode, value: SSAValue, update: SSAValue, starts: Sequence[SSAValue], axes: Sequence[int]
) -> SSAValue:
    """A value with a part replaced, which is smaller along `axes`."""
    if not axes:
        return update
    axis, start = axes[0], whole_number(node, starts[axes[0]])
    if len(axes) > 1:
        size = sizes_of(update)[axis]
        assert isinstance(size, int)
        update = updated(node, part(node, value, start, axis, size), update, starts, axes[1:])
    return node.emit(DynamicUpdateSliceOp, value, update, start, axis=axis)
