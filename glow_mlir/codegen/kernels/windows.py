"""
The window strategy of `generic`: vectors over a dimension that windows do not move along, or over windows of a row.

Steps of windows whose elements lie outside of an operand are skipped: loops over windows have the steps that count.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from glow_mlir.codegen.access import lanes_for, load_as
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, known_steps, linear, nest, nest_steps, product, vector_loop
from glow_mlir.codegen.builder.partition import ALL
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.folds import Combined
from glow_mlir.codegen.kernels.generic import Emission, GenericKernel, Place, captured, factors, parted
from glow_mlir.codegen.kernels.generic_program import Program, folds_of, initial_of, plane_strides_of
from glow_mlir.codegen.kernels.taps import Taps, every_second, few, scalar_rest, whole_windows
from glow_mlir.codegen.lines import Line, Lines, moved_by
from glow_mlir.codegen.math.narrow import in_memory
from glow_mlir.codegen.scalar_body import emit_scalar_body
from glow_mlir.codegen.selection.kernel import Buffer, Choice, KernelCall, Tiles
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.affine_maps import Terms, sums_in, terms_of
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.sizes import smallest, static
from glow_mlir.dialects.stages import StageOp, element_at
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Quotient, Size


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of an operand whose index is a sum."""

    number: int
    """Which operand it is, counted from 0."""
    place: int
    """Which axis it is."""
    terms: Terms
    size: Size
    border: tuple[int, int]

    def step(self, dimension: int) -> int:
        """By how much a dimension moves the index."""
        return self.terms.steps[dimension]

    def holds(self, space: Sequence[Size], is_bordered: bool) -> bool:
        """Whether each index lies in the operand, or in its border as well."""
        before, after = self.border if is_bordered else (0, 0)
        steps = self.terms.steps.items()
        last = sum((_reach(space[d], times) for d, times in steps), start=self.size * 0 + self.terms.offset)
        return -before <= self.terms.offset and smallest(self.size + (after - 1) - last) >= 0


def _reach(size: Size, times: int) -> Size:
    """By how much the last of so many indices is moved, or a little more."""
    if not isinstance(size, int) and len(size.terms) == 1:
        ((product, count),) = size.terms
        if count == 1 and len(product) == 1 and isinstance(product[0], Quotient) and product[0].divisor == times:
            return product[0].dividend + (size.offset - 1) * times
    return (size - 1) * times


@dataclass(frozen=True)
class Frame:
    """How windows lie: along which dimensions they move, and how operands lie along these and others."""

    program: Program
    strides: Sequence[Shape]
    """By how many elements each dimension moves the result, the operands, and planes."""

    @cached_property
    def axes(self) -> list[Axis]:
        """The axes whose index is a sum."""
        *maps, _ = self.program.form.maps
        borders = self.program.form.borders or ((),) * len(maps)
        return [
            Axis(number, axis, terms, view[axis], border[axis] if border else (0, 0))
            for number, (affine, view, border) in enumerate(zip(maps, self.program.op.views(), borders, strict=True))
            for axis, terms in sums_in(affine).items()
        ]

    @cached_property
    def moved(self) -> list[int]:
        """The parallel dimensions that windows move along."""
        found = {dimension for axis in self.axes for dimension in axis.terms.steps}
        return [dimension for dimension in self.program.parallel if dimension in found]

    @cached_property
    def channels(self) -> int | None:
        """The last of the other parallel dimensions, if there are any."""
        others = [dimension for dimension in self.program.parallel if dimension not in self.moved]
        return others[-1] if others else None

    @cached_property
    def merged(self) -> list[int]:
        """`channels`, and the dimensions in front of it that go on where it ends, as one with it."""
        if self.channels is None:
            return []
        found, space = [self.channels], self.program.space
        free = [dimension for dimension in self.program.parallel if dimension not in self.moved]
        for dimension in reversed(free[:-1]):
            length = math.prod(size if isinstance(size := space[own], int) else 0 for own in found)
            goes_on = (strides[dimension] == strides[self.channels] * length for strides in self.strides)
            if {*self.steps(self.channels)} - {0, 1} or not length or not all(goes_on):
                break
            found.insert(0, dimension)
        return found

    @cached_property
    def others(self) -> list[int]:
        """The parallel dimensions that windows do not move along, but for `merged` ones."""
        known = (*self.moved, *self.merged)
        return [dimension for dimension in self.program.parallel if dimension not in known]

    def steps(self, dimension: int | None) -> Shape:
        """By how many elements a dimension moves the result, operands and planes."""
        return tuple(0 if dimension is None else strides[dimension] for strides in self.strides)

    @cached_property
    def row(self) -> Axis | None:
        """
        The axis along which the windows of a row move, where vectors run over these; else `None`.

        Neighbours in memory are windows of a row there, and those of other dimensions are not.
        """
        along = [axis for axis in self.axes if self.moved and self.moved[-1] in axis.terms.steps]
        if len(along) != 1 or not isinstance(self.program.space[self.folded(along[0])], int):
            return None
        if any(self.folded(along[0]) in axis.terms.steps for axis in self.axes if axis is not along[0]):
            return None
        (axis,), steps = along, list(self.steps(self.moved[-1]))
        is_row = steps.pop(0) == 1 and steps.pop(axis.number) in (1, 2) and {*steps} <= {0, 1}
        are_alone = all(self.program.space[dimension] == 1 for dimension in self.merged)
        is_channel = self.steps(self.channels)[0] == 1 and {*self.steps(self.channels)} <= {0, 1}
        return axis if is_row and len(axis.terms.steps) == 2 and (are_alone or not is_channel) else None

    def folded(self, axis: Axis) -> int:
        """The dimension that is folded of an axis."""
        return next(dimension for dimension in axis.terms.steps if dimension in self.program.rows)

    def width(self, target: Target, steps: Sequence[int]) -> int:
        """Lanes of an innermost loop whose operands move by `steps`: enough to hide the latency of an addition."""
        return lanes_for(target, self.program.element, steps, kernel_costs(target).independent_vectors)

    def cuts(self, target: Target) -> int:
        """Into how many parts the loops can be cut."""
        space = static(self.program.space)
        pixels = math.prod(space[dimension] for dimension in (*self.others, *self.moved))
        channels = math.prod(space[dimension] for dimension in self.merged)
        if self.row is not None:
            return pixels * channels // max(1, space[self.moved[-1]])
        return nest_steps((pixels, channels), self.width(target, self.steps(self.channels)))


@dataclass(frozen=True)
class Spot:
    """Where windows are: the index along each parallel dimension but channels, and origins that are computed."""

    indices: Mapping[int, Index]
    origins: dict[Axis, Index] = field(default_factory=dict[Axis, Index])

    def moved(self, dimension: int, index: Index) -> Spot:
        """The spot with an index along one more dimension."""
        kept = {axis: origin for axis, origin in self.origins.items() if dimension not in axis.terms.steps}
        return Spot({**self.indices, dimension: index}, kept)

    def origin(self, b: Builder, axis: Axis) -> Index:
        """Where the first step of windows lies in an axis, maybe outside."""
        if axis not in self.origins:
            moves = axis.terms.steps.items()
            moved = [self.indices[dimension] * times for dimension, times in moves if dimension in self.indices]
            total: Index = moved.pop(0) if moved else b.index(0)
            for move in moved:
                total = move + total
            offset = axis.terms.offset
            self.origins[axis] = total - -offset if offset < 0 else total + offset
        return self.origins[axis]


Reduce = Callable[[Index, int], None]
"""Computes some results of a place: from which channel on, and how many lanes there are."""

Steps = Mapping[StageOp, Mapping[int, Taps]]
"""For each stage the steps that count along folded dimensions."""

Places = Sequence[Index]
"""Where operands are read."""


@kernel("windows")
class WindowsKernel(GenericKernel):
    """The stages of `generic`, and of all operators that an expression defines, over windows."""

    name = "windows"
    PROLOGUE = False
    SUMMING = ()
    WINDOWED = True

    def candidates(self, op: GenericOp | Expressed, storage: Storage, target: Target) -> Sequence[Tiles]:
        return ({},)

    def choices(self, op: GenericOp | Expressed, target: Target) -> Mapping[str, Choice]:
        return {}

    def scratch(self, op: GenericOp | Expressed, target: Target) -> Sequence[Buffer]:
        return ()

    def private(self, op: GenericOp | Expressed) -> Sequence[int]:
        return ()

    def cuts(self, op: GenericOp | Expressed, target: Target) -> Mapping[str, int]:
        program = Program.of(op)
        planes = program.plane_strides(plane_strides_of(op.epilogue)) if isinstance(op, DerivedInstruction) else []
        return {"lines": Frame(program, [*program.operand_strides(), *planes]).cuts(target)}

    def emit(self, call: KernelCall) -> None:
        InWindows.of(call, Program.of(call.op)).emit()


class InWindows(Emission):
    """Stages over windows, whose folds take the steps that count."""

    def has_lanes(self, line: Line, place: Place) -> bool:
        return False

    def jump(self, line: Line, place: Place) -> int:
        return 0

    channel: Index = 0
    """From which channel on results are being computed."""

    @cached_property
    def frame(self) -> Frame:
        """How windows lie."""
        return Frame(self.program, self.strides)

    @cached_property
    def space(self) -> Extents:
        """The sizes of the index space."""
        return self.call.extents(self.program.space)

    def emit(self) -> None:
        if self.frame.row is None:
            self.pixels()
        else:
            self.rows(self.frame.row)

    def pixels(self) -> None:
        """One place at a time, vectors over its channels."""
        frame, dimensions = self.frame, [*self.frame.others, *self.frame.moved]
        size = self.channel_count
        outer = tuple(self.space[dimension] for dimension in dimensions)
        share = self.call.share("lines")
        is_known = all(isinstance(extent, int) for extent in outer)
        by_pixels = share.is_all or not is_known or known_steps(outer) >= share.parts

        def pixel(indices: list[Index]) -> None:
            at = Spot(dict(zip(dimensions, indices, strict=True)))
            reduce = self.reduction(at, self.steps_within(at, self.program.rows), frame.channels)
            width = frame.width(self.call.target, frame.steps(frame.channels))
            vector_loop(self.b, size, width, reduce, ALL if by_pixels else share, scalar_rest(self.call.target))

        nest(self.b, outer, pixel, share if by_pixels else ALL)

    def rows(self, axis: Axis) -> None:
        """One row of windows at a time, vectors over those of its windows that do not reach beyond the axis."""
        b, frame, along = self.b, self.frame, self.frame.moved[-1]
        own = frame.folded(axis)
        size, count, count_of_taps = self.size(axis), self.space[along], self.space[own]
        assert isinstance(count_of_taps, int)
        stride, extent = axis.step(along), (count_of_taps - 1) * axis.step(own) + 1
        first, last = whole_windows(b, size, count, stride, -axis.terms.offset, extent)
        dimensions = [*frame.others, *([] if frame.channels is None else [frame.channels]), *frame.moved[:-1]]

        def row(indices: list[Index]) -> None:
            at = dict(zip(dimensions, indices, strict=True))
            channel = 0 if frame.channels is None else at.pop(frame.channels)
            here = Spot(at)
            outer = self.steps_within(here, [dimension for dimension in self.program.rows if dimension != own])

            def clipped(start: Index, stop: Index) -> None:
                with b.loop(start, stop, 1) as x:
                    window = here.moved(along, x)
                    self.reduction(window, self.steps_within(window, [own], outer), along)(channel, 1)

            def whole(x: Index, lanes: int) -> None:
                steps = {stage: {**taps, own: Taps(0, count_of_taps)} for stage, taps in outer.items()}
                self.reduction(here.moved(along, x + first), steps, along)(channel, lanes)

            if not isinstance(first, int) or first > 0:
                clipped(0, first)
            width = frame.width(self.call.target, (1, 1)) if stride == 1 or self.call.target.vector_bits else 1
            vector_loop(b, last - first, width, whole, rest=scalar_rest(self.call.target))
            if not isinstance(last, int) or not isinstance(count, int) or last < count:
                clipped(last, count)

        extents = (self.channel_count if d == frame.channels else self.space[d] for d in dimensions)
        nest(b, tuple(extents), row, self.call.share("lines"))

    @cached_property
    def channel_count(self) -> Index:
        """How many channels there are, with those of merged dimensions."""
        return product(self.space[dimension] for dimension in self.frame.merged)

    def size(self, axis: Axis) -> Index:
        """How long an axis is."""
        return self.call.extents((axis.size,))[0]

    def steps_within(self, at: Spot, dimensions: Sequence[int], known: Steps | None = None) -> Steps:
        """For each stage the steps along folded dimensions that count at a place, and those that are known."""
        found: dict[tuple[int, Shape], Taps] = {}
        steps: dict[StageOp, Mapping[int, Taps]] = {}
        for stage in self.program.stages:
            operands = self.operands_of(stage)
            for dimension in dimensions:
                if (dimension, operands) not in found:
                    found[dimension, operands] = self.taps(dimension, operands, at)
            own = {dimension: found[dimension, operands] for dimension in dimensions}
            steps[stage] = own if known is None else {**known[stage], **own}
        return steps

    def operands_of(self, stage: StageOp) -> Shape:
        """Which operands a stage reads, counted from 0."""
        return tuple(sorted(self.places[value].number - 1 for value in stage.inputs))

    def taps(self, dimension: int, operands: Sequence[int], at: Spot, is_bordered: bool = False) -> Taps:
        """The steps along a folded dimension that lie in all of some operands, or in their borders as well."""
        b, found = self.b, Taps(0, self.space[dimension])
        for axis in self.frame.axes:
            is_free = dimension not in axis.terms.steps or axis.number not in operands
            if is_free or axis.holds(self.program.space, is_bordered):
                continue
            before, after = axis.border if is_bordered else (0, 0)
            size = self.size(axis)
            high = size + after if after else size
            own = Taps.within(b, at.origin(b, axis), axis.step(dimension), self.space[dimension], -before, high)
            is_first = isinstance(found.first, int)
            found = (
                own if is_first else Taps(b.max(b.index(own.first), found.first), b.min(b.index(own.last), found.last))
            )
        return found

    def start(self, number: int, at: Spot) -> Index:
        """Where the result (0), an operand or a plane is read at a place, but for channels."""
        order = [*self.frame.others, *self.frame.moved]
        if not any(axis.number == number - 1 for axis in self.frame.axes):
            return linear([at.indices[d] for d in order], [self.strides[number][d] for d in order])
        sums = {axis.place: axis for axis in self.frame.axes if axis.number == number - 1}
        affine, strides = self.program.form.maps[number - 1], self.program.axis_strides(number - 1)
        found: list[tuple[int, Index, int]] = []
        for place, (expression, stride) in enumerate(zip(affine.results, strides, strict=True)):
            dimensions = [order.index(d) for d in (terms_of(expression) or Terms({}, 0)).steps if d in order]
            if place in sums:
                found.append((min(dimensions, default=-1), at.origin(self.b, sums[place]), stride))
            elif dimensions:
                found.append((dimensions[0], at.indices[order[dimensions[0]]], stride))
        found.sort(key=lambda item: item[0])
        return linear([index for _, index, _ in found], [stride for _, _, stride in found])

    def reduction(self, at: Spot, steps_of: Steps, lanes_along: int | None) -> Reduce:
        """Reduces the windows at a place: a function of the first channel, and of how many lanes there are."""
        counts = {stage: self.count(stage, at, steps_of[stage]) for stage in self.program.stages}
        written = self.sink_numbers
        read = [number for number in range(len(self.strides)) if number not in written]
        starts = {number: self.start(number, at) for number in (*read, *written)}
        steps, channels = self.frame.steps(lanes_along), self.frame.steps(self.frame.channels)
        nowhere = Lines((), [()] * len(steps), (1,), [(step,) for step in steps], across=False)

        def reduce(channel: Index, lanes: int) -> None:
            self.channel = channel
            moves = [0 if number in written else channels[number] for number in range(len(steps))]
            places = [moved_by(starts[number], channel, step) for number, step in enumerate(moves)]
            line = Line(self.b, nowhere, places, lanes, lanes)
            self.run(line, lambda stage, scalars: self.window(line, stage, scalars, steps_of[stage], counts[stage]))

        return reduce

    def ends(self, line: Line) -> Sequence[Index]:
        found, channels = list(line.starts), self.frame.steps(self.frame.channels)
        for number in self.sink_numbers:
            found[number] = moved_by(found[number], self.channel, channels[number])
        return found

    def count(self, stage: StageOp, at: Spot, taps: Mapping[int, Taps]) -> Value | None:
        """How many steps a stage takes, as a number of its element type, where it counts them."""
        counted = [value for value, word in zip(stage.yielded, stage.words, strict=True) if is_constant(value, word)]
        if not counted:
            return None
        has_border = any(any(axis.border) for axis in self.frame.axes)
        total: Value = self.b.index(1)
        for dimension in self.program.rows:
            bordered = self.taps(dimension, self.operands_of(stage), at, is_bordered=True) if has_border else None
            total = total * (bordered or taps[dimension]).count(self.b)
        return self.b.cast(total, counted[0].type)

    def window(
        self,
        line: Line,
        stage: StageOp,
        scalars: dict[SSAValue, Value],
        taps: Mapping[int, Taps],
        count: Value | None,
    ) -> None:
        """Fold what a stage yields over windows."""
        b, lanes = self.b, line.lanes
        places = [place for place, word in enumerate(stage.words) if not is_constant(stage.yielded[place], word)]
        self.fold(line, stage, scalars, taps, places)
        for place, (value, result) in enumerate(zip(stage.yielded, stage.results, strict=True)):
            if place not in places:
                assert count is not None
                number = number_of(value)
                scalars[result] = b.splat(count if number == 1 else count * b.constant(number, value.type), lanes)

    def fold(
        self,
        line: Line,
        stage: StageOp,
        scalars: dict[SSAValue, Value],
        taps: Mapping[int, Taps],
        places: Sequence[int],
    ) -> None:
        """Fold those of what a stage yields that are at these places, if there are any."""
        b, lanes = self.b, line.lanes
        if not places:
            return
        values = [stage.yielded[place] for place in places]
        folds, initial = [folds_of(stage)[place] for place in places], [initial_of(stage)[place] for place in places]
        sizes, outputs = (
            list(map(len, initial)),
            [
                factors(value) if stage.words[place] == "add" else (value,)
                for place, value in zip(places, values, strict=True)
            ],
        )
        around = {value: scalars[value] for value in captured(stage, scalars)}

        def visit(offsets: Places, totals: Sequence[Value]) -> list[Value]:
            inputs = [self.element(line, value, offset) for value, offset in zip(stage.inputs, offsets, strict=True)]
            flat = [value for group in outputs for value in group]
            found = iter(emit_scalar_body(b, stage.body.block, inputs, flat, lanes, around))
            groups = [[next(found) for _ in group] for group in outputs]
            parts = zip(folds, parted(totals, sizes), groups, strict=True)
            return [value for fold, before, group in parts for value in fold.take(b, before, group, None)]

        start = [b.constant(number, vector(element, lanes)) for part in initial for number, element in part]
        walk = Walk(self, stage, taps)
        offsets = [line.starts[self.places[value].number] for value in stage.inputs]
        largest = walk.largest(line, folds, values, start, offsets)
        totals = walk.all(visit, start, self.program.rows, offsets) if largest is None else [largest]
        for place, fold, own in zip(places, folds, parted(totals, sizes), strict=True):
            scalars[stage.results[place]] = fold.result(b, own, True)

    def element(self, line: Line, value: SSAValue, offset: Index) -> Value:
        """The elements of a row at a step, as memory has them, those of all lanes."""
        b, place, element = self.b, self.places[value], in_memory(element_at(value.type))
        step = line.lines.innermost(place.number)
        if line.lanes == 1 or step <= 1:
            return load_as(b, place.operand, element, offset, step, line.lanes)
        return every_second(
            b,
            line.lanes,
            lambda start: load_as(b, place.operand, element, moved_by(offset, start, 1), 1, line.lanes),
        )


@dataclass(frozen=True)
class Walk:
    """The loops over the steps of windows that count."""

    emission: InWindows
    stage: StageOp
    taps: Mapping[int, Taps]

    def moved(self, offsets: Places, dimension: int, index: Index) -> list[Index]:
        """Where the rows of the stage are read a few steps further along a dimension."""
        emission = self.emission
        steps = [emission.strides[emission.places[value].number][dimension] for value in self.stage.inputs]
        return [moved_by(offset, index, step) for offset, step in zip(offsets, steps, strict=True)]

    def all(
        self,
        visit: Callable[[Places, Sequence[Value]], Sequence[Value]],
        totals: Sequence[Value],
        dimensions: Sequence[int],
        offsets: Places,
    ) -> Sequence[Value]:
        """What accumulators are behind all steps along some dimensions, of which the first is outermost."""
        if not dimensions:
            return visit(offsets, totals)
        taps = self.taps[dimensions[0]]
        with self.emission.b.loop(taps.first, taps.last, 1, carried=totals) as loop:
            inner = self.moved(offsets, dimensions[0], loop.index)
            loop.set(*self.all(visit, loop.values, dimensions[1:], inner))
        return loop.results

    def largest(
        self, line: Line, folds: Sequence[object], values: Sequence[SSAValue], start: Sequence[Value], offsets: Places
    ) -> Value | None:
        """
        The largest of a few floats, where a stage folds these alone and lanes do not hide latencies; else `None`.

        They are compared as if none was NaN, and added up as well: only where the sum is NaN, for which it takes one,
        or two infinities, they are compared again.
        """
        b, target = self.emission.b, self.emission.call.target
        (first, *others), info = folds, start[0].info
        is_largest = isinstance(first, Combined) and first.fold.name == "max" and info.is_float and not others
        is_element = values[0] is self.stage.body.block.args[0] and len(self.stage.inputs) == 1
        if line.lanes > 1 or not is_largest or not is_element or not target.computes(info.bits):
            return None
        taps = (self.taps[dimension] for dimension in self.emission.program.rows)
        if (places := few(taps, kernel_costs(target).unrolled_taps)) is None:
            return None
        (value,) = self.stage.inputs
        strides = self.emission.strides[self.emission.places[value].number]
        steps = [strides[dimension] for dimension in self.emission.program.rows]
        moves = [sum(map(operator.mul, place, steps)) for place in places]
        elements = [self.emission.element(line, value, moved_by(offsets[0], move, 1)) for move in moves]
        largest, total = functools.reduce(b.largest_number, elements), functools.reduce(b.add, elements)
        with_nan = functools.partial(functools.reduce, b.maximum, elements)
        return b.either(b.compare("uno", total, total), lambda: [with_nan()], lambda: [largest])[0]


def is_constant(value: SSAValue, word: str) -> bool:
    """Whether a fold counts steps: it adds up one number."""
    return word == "add" and isinstance(value.owner, arith.ConstantOp)


def number_of(value: SSAValue) -> float:
    """The number that a constant is."""
    assert isinstance(value.owner, arith.ConstantOp)
    assert isinstance(value.owner.value, FloatAttr | IntegerAttr)
    return value.owner.value.value.data
