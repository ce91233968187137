"""
The window strategy of `generic`: vectors over a dimension that windows do not move along, or over windows of a row.

Steps of windows outside of an operand are skipped: loops over windows only have the steps inside.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from glow_mlir.codegen.access import load_as
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.nests import Extents, Index, known_steps, linear, nest, product, vector_loop
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.folds import Combined
from glow_mlir.codegen.kernels.expressions.generic import Emission, GenericKernel, RowOperand, captured, factors, parted
from glow_mlir.codegen.kernels.expressions.generic_program import Program, extra_strides_of, folds_of, initial_of
from glow_mlir.codegen.kernels.expressions.sums_of_integers import sum_of_integers
from glow_mlir.codegen.kernels.expressions.taps import Taps, every_second, few, scalar_rest, whole_windows
from glow_mlir.codegen.kernels.expressions.window_frames import Axis, Frame, Spot
from glow_mlir.codegen.lines import Line, Lines, moved_by
from glow_mlir.codegen.math.narrow import in_memory
from glow_mlir.codegen.scalar_body import emit_scalar_body
from glow_mlir.codegen.selection.kernel import Buffer, Choice, KernelCall, Tiles
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.affine_maps import Terms, terms_of
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.stages import StageOp, element_at
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class WindowLine(Line):
    """Windows side by side, of which there are those in `mask`."""

    mask: Value | None = None

    def store(self, numbers: Sequence[int], sink: Sink, offsets: Sequence[Index], value: Value) -> None:
        starts, steps = zip(*((offsets[number], self.lines.innermost(number)) for number in numbers), strict=True)
        sink.store(self.b, starts, steps, value, self.mask)


Reduce = Callable[..., None]
"""Compute results at a position: the first channel, the number of lanes, and their mask."""

LineAt = Callable[[Index, int], WindowLine]
"""The windows of so many lanes from a channel on."""

Steps = Mapping[StageOp, Mapping[int, Taps]]
"""Stage → folded dimension → the steps inside."""

Counts = Mapping[StageOp, Value | None]
"""For each stage how many steps it takes, if it counts them."""

Offsets = Sequence[Index]
"""Offsets of operands, in elements."""


class InWindows(Emission):
    """Stages over windows, whose folds only take the steps inside."""

    def has_lanes(self, line: Line, row: RowOperand) -> bool:
        return False

    def jump(self, line: Line, row: RowOperand) -> int:
        return 0

    FRAME: ClassVar[type[Frame]] = Frame

    channel: Index = 0
    """The first channel of the results that are being computed."""

    @cached_property
    def frame(self) -> Frame:
        """How windows lie."""
        return self.FRAME(self.program, self.strides)

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
        """Go by pixels, with vectors over the channels of a pixel."""
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
            self.over_channels(size, width, reduce, ALL if by_pixels else share)

        nest(self.b, outer, pixel, share if by_pixels else ALL)

    def over_channels(self, size: Index, width: int, reduce: Reduce, share: Partition) -> None:
        """Loop over the channels of a position within `share`, in vectors."""
        vector_loop(self.b, size, width, reduce, share, scalar_rest(self.call.target))

    def rows(self, axis: Axis) -> None:
        """Go by rows of windows, with vectors over the windows that do not reach beyond the axis."""
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
        """Return the size of an axis."""
        return self.call.extents((axis.size,))[0]

    def steps_within(self, at: Spot, dimensions: Sequence[int], known: Steps | None = None) -> Steps:
        """Return for each stage the steps inside along folded dimensions at a position, with the `known` ones."""
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
        """Return the numbers of the operands that a stage reads, from 0."""
        return tuple(sorted(self.row_operands[value].number - 1 for value in stage.inputs))

    def taps(self, dimension: int, operands: Sequence[int], at: Spot, is_bordered: bool = False) -> Taps:
        """Return the steps along a folded dimension that lie in all given operands, with borders if `is_bordered`."""
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
        """Return the offset of the result (0), an operand or an extra operand at a position, without channels."""
        order = [*self.frame.others, *self.frame.moved]
        if not any(axis.number == number - 1 for axis in self.frame.axes):
            return linear([at.indices[d] for d in order], [self.strides[number][d] for d in order])
        sums = {axis.position: axis for axis in self.frame.axes if axis.number == number - 1}
        affine, strides = self.program.form.maps[number - 1], self.program.axis_strides(number - 1)
        found: list[tuple[int, Index, int]] = []
        for position, (expression, stride) in enumerate(zip(affine.results, strides, strict=True)):
            dimensions = [order.index(d) for d in (terms_of(expression) or Terms({}, 0)).steps if d in order]
            if position in sums:
                found.append((min(dimensions, default=-1), at.origin(self.b, sums[position]), stride))
            elif dimensions:
                found.append((dimensions[0], at.indices[order[dimensions[0]]], stride))
        found.sort(key=lambda item: item[0])
        return linear([index for _, index, _ in found], [stride for _, _, stride in found])

    def reduction(self, at: Spot, steps_of: Steps, lanes_along: int | None) -> Reduce:
        """Return the function of first channel and number of lanes that reduces the windows at a position."""
        counts = {stage: self.count(stage, at, steps_of[stage]) for stage in self.program.stages}
        written = self.sink_numbers
        read = [number for number in range(len(self.strides)) if number not in written]
        starts = {number: self.start(number, at) for number in (*read, *written)}
        steps, channels = self.frame.steps(lanes_along), self.frame.steps(self.frame.channels)
        nowhere = Lines((), [()] * len(steps), (1,), [(step,) for step in steps], across=False)

        def line_at(channel: Index, lanes: int, mask: Value | None) -> WindowLine:
            self.channel = channel
            moves = [0 if number in written else channels[number] for number in range(len(steps))]
            offsets = [moved_by(starts[number], channel, step) for number, step in enumerate(moves)]
            return WindowLine(self.b, nowhere, offsets, lanes, lanes, mask=mask)

        def reduce(channel: Index, lanes: int, mask: Value | None = None) -> None:
            self.take(partial(line_at, mask=mask), channel, lanes, steps_of, counts)

        return reduce

    def take(self, line_at: LineAt, channel: Index, lanes: int, steps_of: Steps, counts: Counts) -> None:
        """Compute the results of some lanes from a channel on."""
        line = line_at(channel, lanes)
        self.run(line, lambda stage, scalars: self.window(line, stage, scalars, steps_of[stage], counts[stage]))

    def ends(self, line: Line) -> Sequence[Index]:
        found, channels = list(line.starts), self.frame.steps(self.frame.channels)
        for number in self.sink_numbers:
            found[number] = moved_by(found[number], self.channel, channels[number])
        return found

    def count(self, stage: StageOp, at: Spot, taps: Mapping[int, Taps]) -> Value | None:
        """Return the number of steps of a stage in its element type, if it counts them."""
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
        line: WindowLine,
        stage: StageOp,
        scalars: dict[SSAValue, Value],
        taps: Mapping[int, Taps],
        count: Value | None,
    ) -> None:
        """Fold the values that a stage yields over windows."""
        b, lanes = self.b, line.lanes
        indices = [index for index, word in enumerate(stage.words) if not is_constant(stage.yielded[index], word)]
        self.fold(line, stage, scalars, taps, indices)
        for index, (value, result) in enumerate(zip(stage.yielded, stage.results, strict=True)):
            if index not in indices:
                assert count is not None
                number = number_of(value)
                scalars[result] = b.splat(count if number == 1 else count * b.constant(number, value.type), lanes)

    def fold(
        self,
        line: WindowLine,
        stage: StageOp,
        scalars: dict[SSAValue, Value],
        taps: Mapping[int, Taps],
        indices: Sequence[int],
    ) -> None:
        """Fold the values that a stage yields at some positions, if any."""
        b, lanes = self.b, line.lanes
        if not indices:
            return
        values = [stage.yielded[index] for index in indices]
        folds, initial = [folds_of(stage)[index] for index in indices], [initial_of(stage)[index] for index in indices]
        sizes = list(map(len, initial))
        is_added = [stage.words[index] == "add" for index in indices]
        outputs = [factors(value) if added else (value,) for value, added in zip(values, is_added, strict=True)]
        around = {value: scalars[value] for value in captured(stage, scalars)}

        def visit(offsets: Offsets, totals: Sequence[Value]) -> list[Value]:
            inputs = [self.element(line, value, offset) for value, offset in zip(stage.inputs, offsets, strict=True)]
            flat = [value for group in outputs for value in group]
            found = iter(emit_scalar_body(b, stage.body.block, inputs, flat, lanes, around))
            groups = [[next(found) for _ in group] for group in outputs]
            parts = zip(folds, parted(totals, sizes), groups, strict=True)
            return [value for fold, before, group in parts for value in fold.take(b, before, group, None)]

        start = [b.constant(number, vector(element, lanes)) for part in initial for number, element in part]
        walk = Walk(self, stage, taps)
        offsets = [line.starts[self.row_operands[value].number] for value in stage.inputs]
        largest = walk.largest(line, folds, values, start, offsets)
        totals = walk.all(visit, start, self.program.rows, offsets) if largest is None else [largest]
        for index, fold, own in zip(indices, folds, parted(totals, sizes), strict=True):
            scalars[stage.results[index]] = fold.result(b, own, True)

    def element(self, line: WindowLine, value: SSAValue, offset: Index) -> Value:
        """The elements of a row at a step, as memory has them, those of all lanes."""
        b, row, element = self.b, self.row_operands[value], in_memory(element_at(value.type))
        step = line.lines.innermost(row.number)
        if line.lanes == 1 or step <= 1:
            return load_as(b, row.operand, element, offset, step, line.lanes, line.mask)
        return every_second(
            b,
            line.lanes,
            lambda start: load_as(b, row.operand, element, moved_by(offset, start, 1), 1, line.lanes),
        )


@dataclass(frozen=True)
class Walk:
    """The loops over the steps of windows inside of operands."""

    emission: InWindows
    stage: StageOp
    taps: Mapping[int, Taps]

    def moved(self, offsets: Offsets, dimension: int, index: Index) -> list[Index]:
        """Move the offsets of the rows of the stage by `index` steps along a dimension."""
        emission = self.emission
        steps = [emission.strides[emission.row_operands[value].number][dimension] for value in self.stage.inputs]
        return [moved_by(offset, index, step) for offset, step in zip(offsets, steps, strict=True)]

    def moved_by(self, offsets: Offsets, dimensions: Sequence[int], steps: Sequence[int]) -> list[Index]:
        """Move the offsets of the rows of the stage by `steps` along some dimensions."""
        emission = self.emission
        found: list[Index] = []
        for value, offset in zip(self.stage.inputs, offsets, strict=True):
            strides = emission.strides[emission.row_operands[value].number]
            found.append(moved_by(offset, sum(strides[d] * step for d, step in zip(dimensions, steps)), 1))
        return found

    def all(
        self,
        visit: Callable[[Offsets, Sequence[Value]], Sequence[Value]],
        totals: Sequence[Value],
        dimensions: Sequence[int],
        offsets: Offsets,
        unrolled: int = 0,
    ) -> Sequence[Value]:
        """
        Return the accumulators after all steps along some dimensions, of which the first is outermost.

        Up to `unrolled` steps, there is code for each.
        """
        if not dimensions:
            return visit(offsets, totals)
        if (known := few((self.taps[dimension] for dimension in dimensions), unrolled)) is not None:
            for steps in known:
                totals = visit(self.moved_by(offsets, dimensions, steps), totals)
            return totals
        taps = self.taps[dimensions[0]]
        with self.emission.b.loop(taps.first, taps.last, 1, carried=totals) as loop:
            inner = self.moved(offsets, dimensions[0], loop.index)
            loop.set(*self.all(visit, loop.values, dimensions[1:], inner, unrolled))
        return loop.results

    def largest(
        self,
        line: WindowLine,
        folds: Sequence[object],
        values: Sequence[SSAValue],
        start: Sequence[Value],
        offsets: Offsets,
    ) -> Value | None:
        """
        Return the largest of a few floats, if a stage only folds these and lanes do not hide latencies; else `None`.

        They are compared as if none were NaN, and added up as well. Only if the sum is NaN, after a NaN or infinities
        of both signs, they are compared again.
        """
        b, target = self.emission.b, self.emission.call.target
        (first, *others), info = folds, start[0].info
        is_largest = isinstance(first, Combined) and first.fold.name == "max" and info.is_float and not others
        is_element = values[0] is self.stage.body.block.args[0] and len(self.stage.inputs) == 1
        if line.lanes > 1 or not is_largest or not is_element or not target.computes(info.bits):
            return None
        taps = (self.taps[dimension] for dimension in self.emission.program.rows)
        if (steps_inside := few(taps, kernel_costs(target).unrolled_taps)) is None:
            return None
        (value,) = self.stage.inputs
        strides = self.emission.strides[self.emission.row_operands[value].number]
        steps = [strides[dimension] for dimension in self.emission.program.rows]
        moves = [sum(map(operator.mul, indices, steps)) for indices in steps_inside]
        elements = [self.emission.element(line, value, moved_by(offsets[0], move, 1)) for move in moves]
        largest, total = functools.reduce(b.largest_number, elements), functools.reduce(b.add, elements)
        with_nan = partial(functools.reduce, b.maximum, elements)
        return b.either(b.compare("uno", total, total), lambda: [with_nan()], lambda: [largest])[0]


@kernel("windows")
class WindowsKernel(GenericKernel):
    """The stages of `generic`, and of all operators that an expression defines, over windows."""

    name = "windows"
    PROLOGUE = False
    SUMMING = ()
    WINDOWED = True
    EMISSION: ClassVar[type[InWindows]] = InWindows
    OF_INTEGERS: ClassVar[bool] = False
    """Whether it sums integers that are narrower than their sum."""

    def accepts(self, op: GenericOp | Expressed) -> bool:
        return super().accepts(op) and (sum_of_integers(Program.of(op)) is not None) == self.OF_INTEGERS

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
        extras = program.extra_strides(extra_strides_of(op.epilogue)) if isinstance(op, DerivedInstruction) else []
        return {"lines": self.EMISSION.FRAME(program, [*program.operand_strides(), *extras]).cuts(target)}

    def emit(self, call: KernelCall) -> None:
        self.EMISSION.of(call, Program.of(call.op)).emit()


def is_constant(value: SSAValue, word: str) -> bool:
    """Whether a fold counts steps: it adds up a constant."""
    return word == "add" and isinstance(value.owner, arith.ConstantOp)


def number_of(value: SSAValue) -> float:
    """Return the number of a constant."""
    assert isinstance(value.owner, arith.ConstantOp)
    assert isinstance(value.owner.value, FloatAttr | IntegerAttr)
    return value.owner.value.value.data
