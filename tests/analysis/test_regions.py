"""Regions and relocations against what enumerating all elements says."""

from __future__ import annotations

import math
from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.analysis.regions import Region, Relocation, may_overlap, region_covers, region_of, regions_overlap
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    Buffer,
    ViewOp,
    buffer_type,
    contiguous_strides,
    extent_of,
    offset_of,
    strides_of,
)
from glow_mlir.dialects.shapes import Shape, shape_of


def addresses(value: SSAValue | Buffer) -> list[int]:
    """The address of each element, in row-major order of the indices."""
    strides = strides_of(value)
    indices = product(*map(range, shape_of(value)))
    return [offset_of(value) + sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]


@st.composite
def parts(draw: st.DrawFn, shape: Shape) -> Buffer:
    """A part of a dense buffer: ranges along its axes, some axes merged, permuted, or cut in two."""
    axes: list[tuple[int, int]] = []
    offset = 0
    for size, stride in zip(shape, contiguous_strides(shape), strict=True):
        start = draw(st.integers(0, size - 1))
        step = draw(st.integers(1, 2))
        count = draw(st.integers(1, (size - start + step - 1) // step))
        offset += start * stride
        axes.append((count, step * stride))
    if draw(st.booleans()) and len(axes) > 1 and axes[-2][1] == axes[-1][1] * axes[-1][0]:
        (outer, _), (inner, stride) = axes[-2:]
        axes[-2:] = [(outer * inner, stride)]
    if draw(st.booleans()) and axes[0][0] % 2 == 0:
        count, stride = axes[0]
        axes[:1] = [(count // 2, 2 * stride), (2, stride)]
    if draw(st.booleans()):
        axes = draw(st.permutations(axes))
    return buffer_type(tuple(size for size, _ in axes), f32, tuple(stride for _, stride in axes), offset)


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(data=st.data(), shape=SHAPES)
def test_overlap_is_exact_and_cover_is_sound(data: st.DataObject, shape: Shape) -> None:
    one, other = data.draw(parts(shape)), data.draw(parts(shape))
    first, second = set(addresses(one)), set(addresses(other))
    assert regions_overlap(region_of(one), region_of(other)) == bool(first & second)
    if region_covers(region_of(one), region_of(other)):
        assert second <= first


def test_parts_of_one_box_are_told_apart() -> None:
    """Channels, rows, borders and interleaved elements, also where axes are merged."""

    def region(shape: Shape, strides: Shape, offset: int = 0) -> Region:
        return region_of(buffer_type(shape, f32, strides, offset))

    left, right = region((4, 4, 3), (32, 8, 1)), region((16, 5), (8, 1), 3)
    assert not regions_overlap(left, right)
    # The borders of an image of two by two, spread to every second pixel inside of a larger one.
    rows, columns = region((2, 3, 2), (14, 2, 1), 15), region((2, 3), (14, 2), 9)
    assert not regions_overlap(rows, columns)


def test_overlap_gives_up_where_rows_run_into_each_other() -> None:
    shape, strides = (40, 40, 40), (997, 991, 983)
    crossing = region_of(buffer_type(shape, f32, strides)), region_of(buffer_type(shape, f32, strides, 1))
    assert regions_overlap(*crossing)


@given(data=st.data(), shape=SHAPES)
def test_relocation_moves_every_element(data: st.DataObject, shape: Shape) -> None:
    assume(math.prod(shape) > 0)
    allocation = AllocOp.of(buffer_type(shape, f32)).result
    order = data.draw(st.permutations(range(len(shape))))
    dense = contiguous_strides(shape)
    permuted = tuple(shape[axis] for axis in order)
    whole = ViewOp.of(allocation, buffer_type(permuted, f32, tuple(dense[axis] for axis in order))).result
    around = tuple(size + data.draw(st.integers(0, 2)) for size in permuted)
    offset = data.draw(st.integers(0, 3))
    target = AllocOp.of(buffer_type((offset + math.prod(around),), f32)).result
    place = ViewOp.of(target, buffer_type(permuted, f32, contiguous_strides(around), offset)).result
    relocation = Relocation.between(whole, place)
    assert relocation is not None
    moved = dict(zip(addresses(whole), addresses(place), strict=True))
    view = ViewOp.of(allocation, data.draw(parts(shape))).result
    layout = relocation.strides_and_offset(view)
    if layout is not None:
        after = buffer_type(shape_of(view), f32, *layout)
        assert addresses(after) == [moved[address] for address in addresses(view)]
    itself = relocation.strides_and_offset(allocation)
    if itself is not None:
        assert addresses(buffer_type(shape, f32, *itself)) == [moved[a] for a in addresses(allocation)]
    if around == permuted and tuple(order) == tuple(range(len(shape))):
        assert layout is not None


def test_only_a_whole_allocation_moves() -> None:
    allocation = AllocOp.of(buffer_type((4, 4), f32)).result
    place = AllocOp.of(buffer_type((4, 3), f32)).result
    part = ViewOp.of(allocation, buffer_type((4, 3), f32, (4, 1))).result
    assert Relocation.between(part, place) is None


def test_buffers_of_two_allocations_are_apart() -> None:
    one, other = (AllocOp.of(buffer_type((4,), f32)).result for _ in range(2))
    assert not may_overlap(one, other)
    assert may_overlap(one, one)
    assert extent_of(one) == 4
