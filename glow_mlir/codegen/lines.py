"""
Lines of elements: the frame of every kernel that combines the elements along some axes.

A line runs along those axes, and there is one for each index of the others. If neighbours in memory belong to one line,
vectors run along it, and their lanes are combined at the end. If they belong to different lines, each lane is a line,
and nothing has to be combined.

Several lines with vectors along them can be processed together, so that their work hides latencies: a value then holds
equally many lanes of each, one line after the other, and each line is folded into one lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import load
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, chunks, collapse, linear, nest, vector_nest
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import numbers_in

BLOCK = 128
"""The number of steps that are accumulated one by one where sums have to be exact."""

MIN_BLOCK = 16
"""The minimum number of steps of a block."""

Initial = Sequence[tuple[float, Attribute]]
"""The initial values of a fold: numbers and their element types."""
Step = Callable[[Index, list[Index], int, list[Value]], list[Value]]
"""Position along the line, element offset of each operand, lanes, values so far → values with that element."""
Combine = Callable[[list[Value], list[Value]], list[Value]]
"""The values of two pieces of a line → those of both together."""


@dataclass(frozen=True)
class Lines:
    """The lines of an index space: extents and, for each operand, strides of the loops over lines and along them."""

    outer: Extents
    outer_steps: list[Shape]
    along: Extents
    along_steps: list[Shape]
    across: bool
    """Whether each lane is a line; otherwise lanes are neighbours in a line."""

    @staticmethod
    def of(extents: Extents, axes: Sequence[int], strides: Sequence[Shape]) -> Lines:
        """The lines along `axes` of an index space, over which operands move by `strides`, one tuple per operand."""
        # The marker keeps axes along lines from merging with others. An axis whose size Python does not know merges
        # with no outer one, so that any number can take its place.
        sizes = tuple(size if isinstance(size, int) else 2 for axis, size in enumerate(extents) if axis not in axes)
        kept = iter(contiguous_strides(sizes))
        marker = tuple(0 if axis in axes else next(kept) for axis in range(len(extents)))
        extents, (marks, *steps) = collapse(extents, [marker, *strides])
        over = [d for d, mark in enumerate(marks) if mark]
        inside = [d for d, mark in enumerate(marks) if not mark]

        def pick(values: Shape, dimensions: list[int]) -> Shape:
            return tuple(values[d] for d in dimensions)

        def sized(dimensions: list[int]) -> Extents:
            return tuple(extents[d] for d in dimensions)

        even = all(step[-1] in (0, 1) for step in steps)
        return Lines(
            sized(over),
            [pick(step, over) for step in steps],
            sized(inside) if inside else (1,),
            [pick(step, inside) if inside else (0,) for step in steps],
            bool(over) and over[-1] == len(extents) - 1 and even,
        )

    def innermost(self, operand: int) -> int:
        """The stride of an operand from lane to lane."""
        return (self.outer_steps if self.across else self.along_steps)[operand][-1]

    @property
    def width_limit(self) -> int | None:
        """1 if lanes would not be neighbours in memory, else `None`."""
        return None if all(self.innermost(o) in (0, 1) for o in range(len(self.along_steps))) else 1

    def side_by_side(self, limit: int) -> int:
        """
        The number of lines, a power of two up to `limit`, that are processed together if vectors run along them.

        If Python knows the number of lines, it is a multiple of that; otherwise, some lines remain at the end.
        """
        if self.across or not self.outer or self.width_limit is not None:
            return 1
        count = self.outer[-1]
        return max(1, min(limit, count & -count)) if isinstance(count, int) else limit

    def each(
        self,
        b: Builder,
        width: int,
        body: Callable[[Line], None],
        share: Partition = ALL,
        count: int = 1,
        starts: Sequence[Index] = (),
    ) -> None:
        """
        Loop over all lines, or a slice of them, in vectors of at most `width` lanes, `count` lines together.

        `starts` has the offset of the first element of each operand, if it is not 0.
        """
        width = self.width_limit or width

        def at(indices: list[Index], lanes: int, count: int = count) -> None:
            offsets: list[Index] = [linear(indices, steps) for steps in self.outer_steps]
            if starts:
                offsets = [moved_by(offset, start, 1) for offset, start in zip(offsets, starts, strict=True)]
            body(Line(b, self, offsets, lanes, width, count))

        if self.across:
            vector_nest(b, self.outer, width, lambda outer, i, lanes: at([*outer, i], lanes), share)
        elif count == 1:
            nest(b, self.outer, lambda outer: at(outer, 1), share)
        else:
            whole = self.outer[-1] // count
            groups = (*self.outer[:-1], whole)
            nest(b, groups, lambda outer: at([*outer[:-1], outer[-1] * count], 1), share)
            if not isinstance(whole, int):
                rest = (*self.outer[:-1], self.outer[-1] - whole * count)
                nest(b, rest, lambda outer: at([*outer[:-1], outer[-1] + whole * count], 1, 1), share)


@dataclass(frozen=True)
class Line:
    """One line; or `lanes` of them if each lane is a line; or `count` lines with vectors along them."""

    b: Builder
    lines: Lines
    starts: list[Index]
    """The offset of the first line's first element, for each operand."""
    lanes: int
    width: int
    count: int = 1

    def load(self, number: int, operand: Operand, offsets: Sequence[Index], lanes: int) -> Value:
        """Load elements of the operand `number`, `lanes` of each line, in the type in which kernels compute."""
        step = self.lines.innermost(number)
        if self.count == 1:
            return load(self.b, operand, offsets[number], step, lanes)
        jump = self.lines.outer_steps[number][-1]
        first = load(self.b, operand, offsets[number], step, lanes)
        others = (
            load(self.b, operand, moved_by(offsets[number], line, jump), step, lanes) if jump else first
            for line in range(1, self.count)
        )
        return concatenated(self.b, [first, *others])

    def store(self, numbers: Sequence[int], sink: Sink, offsets: Sequence[Index], value: Value) -> None:
        """Store consecutive elements of each line; `numbers` are those of the result and of the extra operands."""
        steps = [self.lines.innermost(number) for number in numbers]
        for line, part in enumerate(self.parts(value)):
            moves = (self.lines.outer_steps[number][-1] if line else 0 for number in numbers)
            moved = [moved_by(offsets[number], line, move) for number, move in zip(numbers, moves, strict=True)]
            sink.store(self.b, moved, steps, part)

    def parts(self, value: Value) -> list[Value]:
        """The lanes of a value that belong to each line."""
        if self.count == 1:
            return [value]
        lanes = value.lanes // self.count
        return [lane_range(self.b, value, line * lanes, lanes) for line in range(self.count)]

    def spread(self, value: Value, lanes: int) -> Value:
        """A result of `fold`, for `lanes` elements of each line; a scalar is the same in all of them."""
        if self.count == 1 or lanes == 1 or not value.info.is_vector:
            return value
        return self.b.shuffle(value, value, [line for line in range(self.count) for _ in range(lanes)])

    def _pieces(self) -> list[tuple[Index, Index, int, int]]:
        """Start, stop, step and lanes of the loops over the innermost axis of the line."""
        extent = self.lines.along[-1]
        if self.lines.across:
            return [(0, extent, 1, self.lanes)]
        return [(start, stop, lanes, lanes) for start, stop, lanes in chunks(extent, self.width)]

    def fold(self, initial: Initial, step: Step, combine: Combine, in_blocks: bool = False) -> list[Value]:
        """
        The values that `step` accumulates over the whole line; if vectors run along it, one lane for each line.

        `step` gets the position along the innermost axis. With `in_blocks`, the values of `BLOCK` steps are accumulated
        separately and then combined: sums of floats lose less accuracy if fewer are added one by one (blocked
        summation, Higham 1993).
        """
        pieces = self._pieces()
        start = [
            [self.b.constant(number, vector(element, lanes * self.count)) for number, element in initial]
            for _, _, _, lanes in pieces
        ]
        if not start:
            return [self.b.constant(number, vector(element, self.count)) for number, element in initial]
        counts = numbers_in(self.lines.along)
        is_long = len(counts) == len(self.lines.along) and math.prod(counts) > BLOCK
        blocks = _Blocks(start, combine) if in_blocks and is_long else None
        parts = self._walk(0, self.starts, pieces, start, step, blocks)
        return parts[0] if self.lines.across else self._joined(parts, combine)

    def each(self, body: Callable[[Index, list[Index], int], None]) -> None:
        """Loop over the line; `body` gets the position, the offset of each operand, and the lanes."""

        def step(position: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
            body(position, offsets, lanes)
            return values

        pieces = self._pieces()
        self._walk(0, self.starts, pieces, [[] for _ in pieces], step)

    def _walk(
        self,
        level: int,
        offsets: list[Index],
        pieces: list[tuple[Index, Index, int, int]],
        values: list[list[Value]],
        step: Step,
        blocks: _Blocks | None = None,
    ) -> list[list[Value]]:
        """Emit the loops from the axis `level` of the line inwards; `values` are carried, separately for each piece."""
        steps = [operand[level] for operand in self.lines.along_steps]
        if level == len(self.lines.along) - 1:
            results: list[list[Value]] = []
            for number, ((start, stop, stride, lanes), carried) in enumerate(zip(pieces, values, strict=True)):

                def run(
                    first: Index, last: Index, begin: list[Value], stride: int = stride, lanes: int = lanes
                ) -> list[Value]:
                    with self.b.loop(first, last, stride, carried=begin) as loop:
                        moved = [moved_by(offset, loop.index, s) for offset, s in zip(offsets, steps, strict=True)]
                        loop.set(*step(loop.index, moved, lanes, loop.values))
                    return loop.results

                if blocks is None:
                    results.append(run(start, stop, carried))
                else:
                    results.append(blocks.run(self.b, number, (start, stop, stride), carried, run))
            return results
        flat = [value for part in values for value in part]
        count = len(values[0])
        with self.b.loop(0, self.lines.along[level], 1, carried=flat) as loop:
            moved = [moved_by(offset, loop.index, s) for offset, s in zip(offsets, steps, strict=True)]
            inner = self._walk(level + 1, moved, pieces, _grouped(loop.values, count, len(values)), step, blocks)
            loop.set(*(value for part in inner for value in part))
        return _grouped(loop.results, count, len(values))

    def _joined(self, parts: list[list[Value]], combine: Combine) -> list[Value]:
        """Combine all lanes of a line, of all pieces, into one: by halves, including shorter pieces on the way."""
        waiting = {part[0].lanes // self.count: part for part in parts}
        lanes = max(waiting)
        values = waiting.pop(lanes)
        while lanes > 1:
            lanes //= 2
            low, high = ([self._half(v, lanes, first) for v in values] for first in (0, lanes))
            values = combine(low, high)
            if lanes in waiting:
                values = combine(values, waiting.pop(lanes))
        return values

    def _half(self, value: Value, lanes: int, first: int) -> Value:
        """`lanes` lanes of each line from `first` on, of a value that holds twice as many."""
        if self.count == 1:
            return lane_range(self.b, value, first, lanes)
        starts = range(first, self.count * 2 * lanes, 2 * lanes)
        return self.b.shuffle(value, value, [start + lane for start in starts for lane in range(lanes)])


class _Blocks:
    """Combines the values of blocks of steps, each of which starts from the initial values."""

    def __init__(self, start: list[list[Value]], combine: Combine) -> None:
        self._start = start
        self._combine = combine

    def run(
        self,
        b: Builder,
        number: int,
        steps: tuple[Index, Index, int],
        carried: list[Value],
        run: Callable[[Index, Index, list[Value]], list[Value]],
    ) -> list[Value]:
        """The carried values of a piece after its steps; `run` emits those from one to another."""
        (first, last, stride), begin = steps, self._start[number]
        trips = (last - first) // stride if isinstance(first, int) and isinstance(last, int) else 0
        if trips <= BLOCK:
            # Values that an outer loop carries are combined separately if that costs little compared with the steps.
            is_apart = carried is not begin and trips >= MIN_BLOCK
            return self._combine(carried, run(first, last, begin)) if is_apart else run(first, last, carried)
        assert isinstance(first, int)
        assert isinstance(last, int)
        whole = first + (last - first) // (BLOCK * stride) * BLOCK * stride
        with b.loop(first, whole, BLOCK * stride, carried=carried) as loop:
            loop.set(*self._combine(loop.values, run(loop.index, loop.index + BLOCK * stride, begin)))
        return self._combine(loop.results, run(whole, last, begin)) if whole < last else loop.results


def moved_by(offset: Index, index: Index, stride: int) -> Index:
    """An element offset moved by `index` steps of `stride`."""
    return offset if stride == 0 else index * stride + offset


def lane_range(b: Builder, value: Value, first: int, count: int) -> Value:
    """`count` lanes of a vector from `first` on; a scalar if `count` is 1."""
    return b.extract(value, first) if count == 1 else b.shuffle(value, value, range(first, first + count))


def concatenated(b: Builder, parts: Sequence[Value]) -> Value:
    """Concatenate values of one type, a power of two of them, into one vector."""
    if len(parts) == 1:
        return parts[0]
    if not parts[0].info.is_vector:
        joined = b.splat(parts[0], len(parts))
        for lane, part in enumerate(parts[1:], 1):
            joined = b.insert(joined, part, lane)
        return joined
    half = len(parts) // 2
    low, high = concatenated(b, parts[:half]), concatenated(b, parts[half:])
    return b.shuffle(low, high, range(2 * low.lanes))


def _grouped(values: list[Value], size: int, groups: int) -> list[list[Value]]:
    return [values[g * size : (g + 1) * size] for g in range(groups)]


def line_steps(shape: Shape, axes: Sequence[int]) -> int:
    """The number of lines along `axes` in an index space, which is the maximum number of parts."""
    return math.prod(size for axis, size in enumerate(shape) if axis not in axes)
