"""
Copies and fills of boxes, the basis of all data movement.

A box is an index space in an operand. A copy between two boxes runs in the order of the target; where the source runs
along another axis, squares of elements are transposed in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute

from glow_mlir.codegen.access import lanes_for, load, load_as, raw, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import (
    Extents,
    Index,
    collapse,
    known_steps,
    linear,
    nest,
    numbers,
    steps_of,
    vector_nest,
)
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import type_info
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.codegen.transposition_order import Walk
from glow_mlir.dialects.element_types import is_bool, is_float, is_narrow_float, numpy_dtype
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Box:
    """Elements of an operand: the offset of the first, and the stride of each axis of the box, in elements."""

    operand: Operand
    strides: Shape
    offset: Index = 0

    @staticmethod
    def all_of(operand: Operand) -> Box:
        """The whole operand."""
        return Box(operand, operand.strides)

    def moved(self, indices: Sequence[Index], strides: Shape) -> Box:
        """The box, moved by indices along other axes with those strides."""
        return Box(self.operand, self.strides, self.offset + linear(indices, strides))

    def offset_of(self, indices: Sequence[Index]) -> Index:
        """The offset of an element of the box."""
        return self.offset + linear(indices, self.strides)


def broadcast_strides(operand: Operand, rank: int) -> Shape:
    """The strides of an operand that is broadcast to `rank` axes."""
    missing = rank - len(operand.sizes)
    own = [0 if size == 1 else stride for size, stride in zip(operand.sizes, operand.strides, strict=True)]
    return (*(0,) * missing, *own)


@dataclass(frozen=True)
class _Dimension:
    extent: Index
    into: int
    out_of: int


def _dimensions(shape: Extents, target: Box, source: Box) -> list[_Dimension]:
    """The dimensions of a copy: merged where possible, in the order of the target."""
    order = sorted(range(len(shape)), key=lambda axis: -target.strides[axis])
    sizes: Extents = tuple(shape[axis] for axis in order)
    strides = [tuple(box.strides[axis] for axis in order) for box in (target, source)]
    extents, (into, out_of) = collapse(sizes, strides)
    return [_Dimension(*parts) for parts in zip(extents, into, out_of, strict=True)]


def box_steps(shape: Shape, target: Target) -> int:
    """Roughly the number of parts into which a copy or fill of a box may be partitioned."""
    return -(-math.prod(shape) // kernel_costs(target).part_elements)


def copy_box(b: Builder, shape: Extents, target: Box, source: Box, share: Partition = ALL) -> None:
    """Copy the elements of `source`, or a slice of them, to `target`: boxes of one shape that do not overlap."""
    dimensions = _dimensions(shape, target, source)
    element = raw(target.operand.element)
    rows = _tile_rows(b, dimensions, element)
    across = next((d for d in dimensions[:-1] if d.out_of == 1), None)
    if rows is not None and across is not None:
        _copy_tiles(b, dimensions, across, rows, target, source, share)
        return
    inner = dimensions[-1]
    if _repeats_elements(dimensions, kernel_costs(b.target).repeated_elements):
        _repeat_elements(b, dimensions, target, source, share)
        return
    if _turns_groups(dimensions, b.target.vector_width(element)):
        _turn_groups(b, dimensions, target, source, share)
        return
    lanes = lanes_for(b.target, element, (inner.out_of,)) if inner.into == 1 else 1

    def run(outer: list[Index], i: Index, width: int) -> None:
        offset = linear([*outer, i], [d.out_of for d in dimensions]) + source.offset
        value = load_as(b, source.operand, element, offset, inner.out_of, width)
        into = linear([*outer, i], [d.into for d in dimensions]) + target.offset
        target.operand.pointer.at(into, element).store(value)

    vector_nest(b, tuple(d.extent for d in dimensions), lanes, run, share)


def move_box(b: Builder, shape: Extents, target: Box, source: Box, share: Partition = ALL) -> None:
    """Copy elements as `copy_box` does; narrow floats are converted if the target has wide ones."""
    element = target.operand.element
    if raw(source.operand.element) == raw(element):
        copy_box(b, shape, target, source, share)
        return
    step = source.strides[-1]
    lanes = lanes_for(b.target, element, (step,)) if target.strides[-1] == 1 else 1

    def run(outer: list[Index], i: Index, width: int) -> None:
        value = load(b, source.operand, source.offset_of([*outer, i]), step, width)
        store(b, target.operand, target.offset_of([*outer, i]), value)

    vector_nest(b, shape, lanes, run, share)


def _repeats_elements(dimensions: Sequence[_Dimension], limit: int) -> bool:
    """Whether the target repeats each of the neighbours in the source in succession, up to `limit` times."""
    if len(dimensions) < 2:
        return False
    line, times = dimensions[-2:]
    is_short = isinstance(times.extent, int) and 1 < times.extent <= limit
    return is_short and (times.into, times.out_of, line.into, line.out_of) == (1, 0, times.extent, 1)


def _repeat_elements(b: Builder, dimensions: Sequence[_Dimension], target: Box, source: Box, share: Partition) -> None:
    """Copy vectors of the source, repeating each lane as often as the last dimension is long."""
    *over, times = dimensions
    element = raw(target.operand.element)

    def run(outer: list[Index], i: Index, width: int) -> None:
        offset = linear([*outer, i], [d.out_of for d in over]) + source.offset
        value = load_as(b, source.operand, element, offset, 1, width)
        (count,) = numbers((times.extent,))
        lanes = [lane for lane in range(width) for _ in range(count)]
        repeated = b.shuffle(value, value, lanes) if width > 1 else b.splat(value, count)
        into = linear([*outer, i], [d.into for d in over]) + target.offset
        target.operand.pointer.at(into, element).store(repeated)

    vector_nest(b, tuple(d.extent for d in over), lanes_for(b.target, element, (1,)), run, share)


def _turns_groups(dimensions: Sequence[_Dimension], lanes: int) -> bool:
    """Whether the target has small groups of neighbours in the source, each in the opposite order."""
    if len(dimensions) < 2:
        return False
    line, group = dimensions[-2:]
    is_small = (
        isinstance(group.extent, int) and 1 < group.extent <= lanes // 2 and not group.extent & (group.extent - 1)
    )
    return is_small and (group.into, group.out_of, line.into, line.out_of) == (1, -1, group.extent, group.extent)


def _turn_groups(b: Builder, dimensions: Sequence[_Dimension], target: Box, source: Box, share: Partition) -> None:
    """Copy vectors of the source, with the lanes of each group in the opposite order."""
    *outer, line, group = dimensions
    element, (size,) = raw(target.operand.element), numbers((group.extent,))
    strides = [d.out_of for d in outer], [d.into for d in outer]

    def run(indices: list[Index], i: Index, width: int) -> None:
        if width < size:
            return  # Elements are whole groups.
        offset = linear([*indices, i], [*strides[0], 1]) + (source.offset - (size - 1))
        value = load_as(b, source.operand, element, offset, 1, width)
        turned = b.shuffle(value, value, [lane ^ (size - 1) for lane in range(width)])
        into = linear([*indices, i], [*strides[1], 1]) + target.offset
        target.operand.pointer.at(into, element).store(turned)

    extents = (*(d.extent for d in outer), line.extent * size)
    vector_nest(b, extents, lanes_for(b.target, element, (1,)), run, share)


def _tile_rows(b: Builder, dimensions: Sequence[_Dimension], element: Attribute) -> int | None:
    """Rows of the squares to transpose; `None` if the target does not run across the source."""
    last = dimensions[-1]
    if last.into != 1 or last.out_of in (0, 1):
        return None
    costs, size = kernel_costs(b.target), type_info(element).bits // 8
    rows = min(b.target.vector_width(element), max(costs.square_rows, costs.square_bytes // size))
    return rows if rows >= 4 else None


def _copy_tiles(
    b: Builder,
    dimensions: Sequence[_Dimension],
    across: _Dimension,
    rows: int,
    target: Box,
    source: Box,
    share: Partition,
) -> None:
    """
    Copy in squares, in the order of a `Walk`: the source runs along `across`, the target along the last dimension.

    `share` selects a slice of the other dimensions, or of the squares along `across` if there are more of these.
    """
    along = dimensions[-1]
    outer = [d for d in dimensions if d is not across and d is not along]

    def tile(indices: list[Index], i: Index, height: int, j: Index, width: int) -> None:
        index = [*indices, i, j]
        dims = [*outer, across, along]
        out_of = linear(index, [d.out_of for d in dims]) + source.offset
        into = linear(index, [d.into for d in dims]) + target.offset
        _tile(b, rows, (height, width), target.operand, into, across.into, source.operand, out_of, along.out_of)

    squares = (across.extent + rows - 1) // rows
    by_lines = share.is_all
    if not share.is_all:
        lines = known_steps([d.extent for d in outer])
        by_lines = lines >= share.parts or (isinstance(squares, int) and lines >= squares)
    of_squares = ALL if by_lines else share
    size = type_info(raw(target.operand.element)).bits // 8
    # Sizes that are symbols change from call to call, and are assumed to fit into a cache.
    moved = 2 * size * math.prod(d.extent for d in dimensions if isinstance(d.extent, int))
    walk = Walk.of(b.target, rows, size, across.into, along.out_of, moved)

    def tiles(indices: list[Index]) -> None:
        for first, last, width in _squares(along.extent, rows):
            with b.loop(first, last, walk.block) as block:
                block_end = b.min(block + walk.block, last)
                for start, stop, height in _squares(across.extent, rows):
                    begin, end = start, stop
                    if not of_squares.is_all:
                        # If Python does not know the rest, it is one square that is copied line by line.
                        side = height if isinstance(stop, int) else rows
                        begin, end = of_squares.within(squares, start // rows, steps_of(stop - start, side))
                        begin, end = begin * side + start, end * side + start
                        end = end if isinstance(stop, int) else b.min(end, stop)
                    with b.loop(begin, end, walk.strip) as top, b.loop(block, block_end, width) as j:
                        with b.loop(top, b.min(top + walk.strip, end), height) as i:
                            tile(indices, i, height, j, width)

    nest(b, tuple(d.extent for d in outer), tiles, share if by_lines else ALL)


def _squares(extent: Index, rows: int) -> list[tuple[Index, Index, int]]:
    """Start, stop and step of the whole squares along an axis, and of the rest: one step if Python knows its size."""
    whole = extent // rows * rows
    if not isinstance(extent, int) or not isinstance(whole, int):
        return [(0, whole, rows), (whole, extent, 1)]
    pieces = [(0, whole, rows), (whole, extent, extent - whole)]
    return [piece for piece in pieces if piece[0] < piece[1]]


def _tile(
    b: Builder,
    rows: int,
    size: tuple[int, int],
    target: Operand,
    into: Index,
    target_pitch: int,
    source: Operand,
    out_of: Index,
    source_pitch: int,
) -> None:
    """Transpose one rectangle of `size`, at most `rows` each way: vectors run along its height in the source."""
    height, width = size
    element = raw(target.element)
    read = [load_as(b, source, element, source_pitch * j + out_of, 1, height) for j in range(width)]
    registers = [resized(b, value, rows) for value in read]
    registers += [registers[0]] * (rows - width)
    for i, value in enumerate(transposed(b, registers)[:height]):
        target.pointer.at(target_pitch * i + into, element).store(resized(b, value, width))


def resized(b: Builder, value: Value, lanes: int) -> Value:
    """The first `lanes` lanes of a value; missing ones are undefined."""
    if value.lanes == lanes:
        return value
    if lanes == 1:
        return b.extract(value, 0)
    if value.lanes == 1:
        return b.splat(value, lanes)
    return b.shuffle(value, value, [lane if lane < value.lanes else -1 for lane in range(lanes)])


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square, which has as many vectors as each has lanes, a power of two."""
    result = list(rows)
    count = len(result)
    step = 1
    while step < count:
        low = [lane if not lane & step else lane - step + count for lane in range(count)]
        high = [lane + step if not lane & step else lane + count for lane in range(count)]
        for i in range(count):
            if not i & step:
                x, y = result[i], result[i + step]
                result[i], result[i + step] = b.shuffle(x, y, low), b.shuffle(x, y, high)
        step *= 2
    return result


def fill_box(b: Builder, shape: Extents, target: Box, value: Value, share: Partition = ALL) -> None:
    """Store `value`, a scalar of raw bits, to all elements of a box, or to a slice of them."""
    dimensions = _dimensions(shape, target, Box(target.operand, (0,) * len(shape)))
    element, inner = value.info.element, dimensions[-1]
    lanes = lanes_for(b.target, element, ()) if inner.into == 1 else 1

    def run(outer: list[Index], i: Index, width: int) -> None:
        into = linear([*outer, i], [d.into for d in dimensions]) + target.offset
        target.operand.pointer.at(into, element).store(b.splat(value, width) if width > 1 else value)

    vector_nest(b, tuple(d.extent for d in dimensions), lanes, run, share)


def raw_constant(b: Builder, value: float, element: Attribute) -> Value:
    """A number as the raw bits of an element."""
    if is_narrow_float(element):
        return b.constant(int(np.array(value, numpy_dtype(element)).view(np.uint8)), raw(element))
    if is_float(element):
        return b.bits_of(b.constant(value, element))
    return b.constant(int(bool(value)) if is_bool(element) else int(value), raw(element))
