"""
The kernel of `generic`: the chain of stages at each point of the parallel dimensions.

Where every stage runs along all other dimensions, these are the lines of `codegen.lines`, several side by side or one
in each lane. Else a point is taken alone, and each stage has lines of its own: along what it folds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, product
from typing import ClassVar, Self

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.access import lanes_for, load_as
from glow_mlir.codegen.bodies import Plane, Prologue, Sink, prologue_of
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest
from glow_mlir.codegen.builder.nests import product as steps_over
from glow_mlir.codegen.builder.types import f64, type_info, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.folds import Combined, Position
from glow_mlir.codegen.kernels.generic_program import (
    LINES,
    Program,
    can_run,
    folds_of,
    initial_of,
    is_count,
    lines_over,
)
from glow_mlir.codegen.kernels.indexed_reads import Element, Slices, checked, elements_of
from glow_mlir.codegen.lines import Line, Lines, Step, concatenated, moved_by
from glow_mlir.codegen.math.narrow import from_memory, held, in_memory, to_memory
from glow_mlir.codegen.scalar_body import emit_scalar_body, emit_scalar_ops
from glow_mlir.codegen.selection.kernel import (
    Buffer,
    Choice,
    Kernel,
    KernelCall,
    Operand,
    Tiles,
)
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.folds import known_fold
from glow_mlir.dialects.glow_high.base import operand_groups
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.shapes import Shape
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.stages import RUNNING_FOLDS, IndicesOp, RowType, StageOp, element_at, index_type
from glow_mlir.dialects.target import Target
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Stored(Sink):
    """Where results go that are as memory has them."""

    @staticmethod
    def of(call: KernelCall) -> Stored:
        plain = Sink.of(call)
        return Stored(plain.operand, plain.epilogue, plain.planes)

    def store(
        self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], value: Value, mask: Value | None = None
    ) -> None:
        """Store neighbouring elements, see `Sink.store`."""
        if self.epilogue is None and mask is None:
            self.operand.pointer.at(offsets[0], in_memory(self.operand.element)).store(value)
        else:
            super().store(b, offsets, steps, value, mask)


@kernel("generic")
class GenericKernel(Kernel[GenericOp | Expressed]):
    """The stages of `generic`, and of all operators that an expression defines, at each parallel point."""

    name = "generic"
    NAMED_BY_INSTRUCTION = True
    AXES = ("lines",)
    EPILOGUE = True
    PROLOGUE = True
    RUN_TIME_SIZES = True
    SUMMING = (LINES,)
    WINDOWED: ClassVar[bool] = False
    """Whether maps of operands have sums."""

    def accepts(self, op: GenericOp | Expressed) -> bool:
        program = Program.of(op)
        # An operator that folds nothing is left to lower: elementwise operators join others.
        form = program.form
        is_wanted = program.is_generic or bool(form.reads) or any(stage.words for stage in program.stages)
        has_prologue = isinstance(op, DerivedInstruction) and op.prologue is not None
        is_able = can_run(form) and form.is_windowed == self.WINDOWED
        if isinstance(op, DerivedInstruction) and program.moves_slices and not Slices.of(program).suit(op.bodies):
            return False
        return is_wanted and is_able and (not has_prologue or program.reads_first_once)

    def candidates(self, op: GenericOp | Expressed, storage: Storage, target: Target) -> Sequence[Tiles]:
        return Program.of(op).candidates(target) if isinstance(op, Instruction) else ({},)

    def choices(self, op: GenericOp | Expressed, target: Target) -> Mapping[str, Choice]:
        tiles = Program.of(op).candidates(target)
        return {LINES: Choice([found[LINES] for found in tiles])} if LINES in tiles[0] else {}

    def scratch(self, op: GenericOp | Expressed, target: Target) -> Sequence[Buffer]:
        program = Program.of(op)
        times = program.elements_a_line(target)
        return [((times * program.kept_size(value),), element_at(value.type)) for value in program.kept]

    def private(self, op: GenericOp | Expressed) -> Sequence[int]:
        return range(len(Program.of(op).kept))

    def cuts(self, op: GenericOp | Expressed, target: Target) -> Mapping[str, int]:
        program = Program.of(op)
        if program.moves_slices:
            return {"lines": Slices.of(program).steps(target)}
        space = static(program.space)
        return {"lines": math.prod(space[number] for number in program.parallel)}

    def emit(self, call: KernelCall) -> None:
        program = Program.of(call.op)
        if program.moves_slices:
            Slices.of(program).emit(call, operands_read(call, program), Stored.of(call))
        elif program.runs_along_lines:
            AlongLines.of(call, program).emit()
        else:
            AtPoints.of(call, program).emit()


@dataclass(frozen=True)
class Place:
    """Where the elements of a row are: an operand, or memory of the row's own."""

    number: int
    """Which of what is walked it is."""
    operand: Operand | Plane
    kept: int = 0
    """How many elements a row that is kept has; 0 for an operand."""
    elements: Mapping[int, Element] = field(default_factory=dict[int, Element])
    """Numbers of what is walked → the elements there at which its axes are read."""


def operands_read(call: KernelCall, program: Program) -> list[Operand]:
    """The operands that a program reads, as often as it does, in order."""
    own = [operand for name, _ in operand_groups(call.op) for operand in call.many(name) if name in program.names]
    return [own[number] for number in program.op.read_operands()]


@dataclass
class Emission(ABC):
    """One chain of stages being emitted: the places of its rows, and the scalars that there are."""

    call: KernelCall
    program: Program
    sink: Stored
    places: dict[SSAValue, Place]
    strides: list[Shape]
    """By how many elements each dimension moves what is walked: result, operands, planes, and rows that are kept."""
    prologue: Prologue | None
    prologue_places: list[Place]
    """Where the elements of its planes are."""
    indices: dict[int, int]
    """Dimensions whose indices are read → which of what is walked these are."""
    chosen: dict[tuple[int, int, int], Value] = field(default_factory=dict[tuple[int, int, int], Value])
    """Indices in operands that are the same along a line, by which of what is walked, line and lane."""

    @classmethod
    def of(cls, call: KernelCall, program: Program) -> Self:
        """The emission of the instruction of a call."""
        sink = Stored.of(call)
        strides = [*program.operand_strides(), *program.plane_strides([plane.strides for plane in sink.planes])]
        operands = operands_read(call, program)
        places: dict[SSAValue, Place] = {}
        for number, (argument, operand) in enumerate(zip(program.block.args, operands, strict=True)):
            elements = elements_of(call, program, number, operands)
            places[argument] = Place(number + 1, operand, 0, dict(enumerate(elements, len(strides))))
            strides += [element.steps for element in elements]
        if program.in_result is not None:
            places[program.in_result] = Place(0, sink.operand)
        prologue = prologue_of(call)
        planes = () if prologue is None else prologue.planes
        first = [Place(number, plane) for number, plane in enumerate(planes, len(strides))]
        strides += program.prologue_strides([plane.strides for plane in planes])
        indices = {dimension: number for number, dimension in enumerate(program.indexed, len(strides))}
        strides += program.index_strides()
        for value, operand in zip(program.kept, call.many("scratch"), strict=False):
            places[value] = Place(len(strides), operand, program.kept_size(value))
            strides.append(program.kept_strides(value))
        return cls(call, program, sink, places, strides, prologue, first, indices)

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    @property
    def sink_numbers(self) -> list[int]:
        """Which of what is walked are the result and the planes of the epilogue."""
        first = 1 + len(self.program.block.args)
        return [0, *range(first, first + len(self.sink.planes))]

    def read(self, line: Line, value: SSAValue, offsets: Sequence[Index], lanes: int) -> Value:
        """Elements of a row as memory has them, `lanes` of each line; those of the first operand by the prologue."""
        if isinstance(value.owner, IndicesOp):
            return self._indices(line, value.owner.dimension, element_at(value.type), offsets, lanes)
        found = self._elements(line, self.places[value], in_memory(element_at(value.type)), offsets, lanes)
        if self.prologue is None or value is not self.program.block.args[0]:
            return found
        planes = [self._elements(line, place, place.operand.element, offsets, lanes) for place in self.prologue_places]
        return self.prologue.apply(self.b, found, planes)

    def _indices(self, line: Line, dimension: int, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """The indices of neighbours in each line along a dimension."""
        b, number = self.b, self.indices[dimension]
        first = b.splat(b.cast(b.index(offsets[number]), element), lanes)
        one = first + b.iota(element, lanes) if lanes > 1 and line.lines.innermost(number) else first
        return concatenated(b, [one] * line.count)

    def _elements(self, line: Line, place: Place, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """Elements of a type as memory has them, `lanes` of each line."""
        if place.elements:
            return self._chosen(line, place, element, offsets, lanes)
        step, first = line.lines.innermost(place.number), offsets[place.number]
        if self.has_lanes(line, place):
            return load_as(self.b, place.operand, element, first * line.width, 1, lanes)
        jump = self.jump(line, place) if line.count > 1 else 0
        one = load_as(self.b, place.operand, element, first, step, lanes)
        others = (
            load_as(self.b, place.operand, element, moved_by(first, number, jump), step, lanes) if jump else one
            for number in range(1, line.count)
        )
        return concatenated(self.b, [one, *others])

    def _chosen(self, line: Line, place: Place, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """Elements at indices: `lanes` of a line at once where these are the same for all, else one by one."""
        lines, step = line.lines, line.lines.innermost(place.number)
        width = 1 if any(lines.innermost(number) for number in place.elements) else lanes
        found: list[Value] = []
        for own, lane in product(range(line.count), range(0, lanes, width)):
            first = self._moved(line, place.number, offsets, own, lane)
            for number, read in place.elements.items():
                is_fixed = not any(lines.along_steps[number])
                if (chosen := self.chosen.get((number, own, lane)) if is_fixed else None) is None:
                    chosen = self._index(line, number, read, offsets, own, lane)
                first = chosen * read.stride + first
            found.append(load_as(self.b, place.operand, element, first, step, width))
        return concatenated(self.b, found)

    def _choose(self, line: Line) -> None:
        """Read and check the indices that are the same along a line, or that the lines in its lanes have."""
        self.chosen.clear()
        lines = line.lines
        used = {number: read for place in self.places.values() for number, read in place.elements.items()}
        for number, read in used.items():
            if any(lines.along_steps[number]):
                continue
            lanes = line.lanes if lines.innermost(number) else 1
            for own, lane in product(range(line.count), range(lanes)):
                self.chosen[number, own, lane] = self._index(line, number, read, line.starts, own, lane)

    def _index(self, line: Line, number: int, read: Element, offsets: Sequence[Index], own: int, lane: int) -> Value:
        """The index that a lane of one of the lines side by side reads, which is in range."""
        return checked(self.call, read.read(self.b, self._moved(line, number, offsets, own, lane)), read.size)

    def _moved(self, line: Line, number: int, offsets: Sequence[Index], own: int, lane: int) -> Index:
        """Where an element is of a lane of one of the lines side by side."""
        start = moved_by(offsets[number], own, line.lines.outer_steps[number][-1] if own else 0)
        return moved_by(start, lane, line.lines.innermost(number) if lane else 0)

    def keep(self, line: Line, value: SSAValue, offsets: Sequence[Index], stored: Value) -> None:
        """Store elements of a row, as memory has them: where it is kept, and in the result if they are that."""
        if value is self.program.result:
            line.store(self.sink_numbers, self.sink, offsets, stored)
        if (place := self.places.get(value)) is None:
            return
        element, first = in_memory(element_at(value.type)), offsets[place.number]
        if self.has_lanes(line, place):
            place.operand.pointer.at(first * line.width, element).store(stored)
            return
        jump = self.jump(line, place) if line.count > 1 else 0
        for number, part in enumerate(line.parts(stored)):
            place.operand.pointer.at(moved_by(first, number, jump), element).store(part)

    @abstractmethod
    def has_lanes(self, line: Line, place: Place) -> bool:
        """Whether a row has an element for each lane at each of its places."""

    @abstractmethod
    def jump(self, line: Line, place: Place) -> int:
        """How far apart elements of a row are that lines side by side have."""

    def step(self, line: Line, stage: StageOp, scalars: Mapping[SSAValue, Value]) -> Step:
        """What a stage does with neighbours along a line: it keeps rows, and takes in what it folds."""
        words, block = stage.words, stage.body.block
        outputs = [factors(value) if word == "add" else (value,) for value, word in zip(stage.yielded, words)]
        outputs += [(value,) for value in stage.yielded[len(words) :]]
        kept = stage.results[len(words) :]
        used, folds, sizes = captured(stage, scalars), folds_of(stage), list(map(len, initial_of(stage)))

        def step(position: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
            inputs = [self.read(line, value, offsets, lanes) for value in stage.inputs]
            around = {value: line.spread(scalars[value], lanes) for value in used}
            flat = [value for group in outputs for value in group]
            results = iter(emit_scalar_body(self.b, block, inputs, flat, lanes * line.count, around))
            groups = [[next(results) for _ in group] for group in outputs]
            folded: list[Value] = []
            for fold, yielded, before, group in zip(folds, stage.yielded, parted(values, sizes), groups, strict=False):
                element = index_type(yielded.type)
                is_position = isinstance(fold, Position)
                index = self._indices(line, stage.folded[0], element, offsets, lanes) if is_position else None
                folded += fold.take(self.b, before, group, index)
            for result, (stored,) in zip(kept, groups[len(words) :], strict=True):
                self.keep(line, result, offsets, stored)
            return folded

        return step

    def stage(self, line: Line, stage: StageOp, scalars: dict[SSAValue, Value]) -> None:
        """Run a stage along a line; folds of it that are scalars then are among the scalars."""
        words = stage.words
        if is_count(stage):
            scalars[stage.results[0]] = self.counted(line, stage)
            return
        if words and words[0] in RUNNING_FOLDS:
            self.run_totals(line, stage, scalars)
            return
        step = self.step(line, stage, scalars)
        if not words:
            line.each(lambda position, offsets, lanes: _nothing(step(position, offsets, lanes, [])))
            return
        initial = initial_of(stage)
        adds = all(word == "add" and is_float(part[0][1]) for word, part in zip(words, initial, strict=True))
        folds, sizes = folds_of(stage), list(map(len, initial))

        def join(x: list[Value], y: list[Value]) -> list[Value]:
            parts = zip(folds, parted(x, sizes), parted(y, sizes), strict=True)
            return [value for fold, own, other in parts for value in fold.join(self.b, own, other)]

        totals = line.fold([number for part in initial for number in part], step, join, in_blocks=adds)
        may_be_empty = not all(isinstance(extent, int) for extent in line.lines.along)
        for result, fold, values in zip(stage.results, folds, parted(totals, sizes), strict=False):
            scalars[result] = fold.result(self.b, values, may_be_empty)

    def run_totals(self, line: Line, stage: StageOp, scalars: Mapping[SSAValue, Value]) -> None:
        """Store the running totals of a line, or of one in each lane; those of floats are carried in f64."""
        b, block, lanes = self.b, stage.body.block, line.lanes
        (value,), (result,) = stage.yielded, stage.results
        word, exclusive, reverse = RUNNING_FOLDS[stage.words[0]]
        element = held(value.type)
        carrier = f64 if type_info(element).is_float and self.call.target.doubles else element
        fold = Combined(known_fold(word, carrier))
        around = {used: line.spread(scalars[used], lanes) for used in captured(stage, scalars)}
        (extent,), steps = line.lines.along, [step for (step,) in line.lines.along_steps]
        start = b.constant(fold.initial(carrier)[0][0], vector(carrier, lanes))
        with b.loop(0, extent, 1, carried=[start]) as loop:
            place = extent - 1 - loop.index if reverse else loop.index
            offsets = [moved_by(first, place, step) for first, step in zip(line.starts, steps, strict=True)]
            inputs = [self.read(line, source, offsets, lanes) for source in stage.inputs]
            (stored,) = emit_scalar_body(b, block, inputs, [value], lanes, around)
            (total,) = loop.values
            following = fold.combine(b, total, b.cast(from_memory(b, stored, value.type), carrier))
            found = b.cast(total if exclusive else following, element)
            self.keep(line, result, offsets, to_memory(b, found, value.type))
            loop.set(following)

    def counted(self, line: Line, stage: StageOp) -> Value:
        """How many indices a stage counts, as a number of its type, for each lane."""
        space = self.call.extents(self.program.space)
        (value,) = stage.yielded
        times = self.b.index(steps_over(space[number] for number in stage.space))
        count = self.b.cast(times, value.type) * emit_scalar_body(self.b, stage.body.block, [], [value], 1)[0]
        return self.b.splat(count, line.lanes * line.count)

    def run(self, line: Line, stage: Callable[[StageOp, dict[SSAValue, Value]], None]) -> None:
        """Run the chain where the operands of which there is one element are at a line; `stage` runs a stage."""
        scalars: dict[SSAValue, Value] = {}
        self._choose(line)
        self.read_scalars(line, scalars)
        for op in own_operations(self.program.block):
            if isinstance(op, StageOp):
                stage(op, scalars)
            elif op.results and not isinstance(op, IndicesOp):
                emit_scalar_ops(self.b, [op], scalars, line.lanes * line.count)
        result = self.program.result
        if not isinstance(result.type, RowType):
            stored = to_memory(self.b, scalars[result], result.type)
            line.store(self.sink_numbers, self.sink, self.ends(line), stored)

    def ends(self, line: Line) -> Sequence[Index]:
        """Where operands are when what a line gives is stored."""
        return line.starts

    def read_scalars(self, line: Line, scalars: dict[SSAValue, Value]) -> None:
        """Read the operands of which a line has one element."""
        for argument in self.program.block.args:
            if not isinstance(argument.type, RowType) and argument.first_use is not None:
                value = self.read(line, argument, line.starts, line.lanes)
                scalars[argument] = from_memory(self.b, value, argument.type)


class AlongLines(Emission):
    """Stages along the lines of the whole index space."""

    def has_lanes(self, line: Line, place: Place) -> bool:
        return place.kept > 0 and line.lines.across

    def jump(self, line: Line, place: Place) -> int:
        return place.kept or line.lines.outer_steps[place.number][-1]

    def emit(self) -> None:
        call, program = self.call, self.program
        space = call.extents(program.space)
        lines = program.lines(space, self.strides)
        count = program.count(lines, call.target)
        lines.each(self.b, program.width(call.target, count, lines.across), self._line, call.share("lines"), count)

    def _line(self, line: Line) -> None:
        """Run the chain along a line, or along some side by side."""
        self.run(line, lambda stage, scalars: self.stage(line, stage, scalars))


class AtPoints(Emission):
    """Stages at a point of the parallel dimensions, each along lines of its own."""

    def has_lanes(self, line: Line, place: Place) -> bool:
        return False

    def jump(self, line: Line, place: Place) -> int:
        return line.lines.outer_steps[place.number][-1]

    def emit(self) -> None:
        space, parallel = self.call.extents(self.program.space), self.program.parallel

        def point(indices: list[Index]) -> None:
            starts: list[Index] = [linear(indices, [steps[d] for d in parallel]) for steps in self.strides]
            nowhere = Lines((), [()] * len(starts), (1,), [(0,)] * len(starts), across=False)
            line = Line(self.b, nowhere, starts, 1, 1)
            self.run(line, lambda stage, scalars: self._own_lines(stage, scalars, space, starts))

        nest(self.b, [space[number] for number in parallel], point, self.call.share("lines"))

    def _own_lines(
        self, stage: StageOp, scalars: dict[SSAValue, Value], space: Extents, starts: Sequence[Index]
    ) -> None:
        """Run a stage along lines that lie along what it folds, or along all that it runs over."""
        target, walked = self.call.target, self._walked(stage)
        nothing = (0,) * len(space)
        strides = [steps if number in walked else nothing for number, steps in enumerate(self.strides)]
        lines = lines_over(space, stage.space, stage.folded or stage.space, strides)
        vectors = kernel_costs(target).independent_vectors
        count = 1 if self.program.runs else lines.side_by_side(vectors)
        width = lanes_for(target, self.program.element, (0,), 2 * vectors if lines.across else vectors // count)
        folded = stage.results[: len(stage.words)]

        def body(line: Line) -> None:
            self._choose(line)
            self.stage(line, stage, scalars)
            for result in folded:
                if isinstance(result.type, RowType):
                    self.keep(line, result, line.starts, scalars.pop(result))

        lines.each(self.b, width, body, count=count, starts=starts)

    def _walked(self, stage: StageOp) -> set[int]:
        """Which of what is walked a stage reads or writes."""
        values = [value for value in (*stage.inputs, *stage.results) if value in self.places]
        numbers = {self.places[value].number for value in values}
        numbers |= {number for value in values for number in self.places[value].elements}
        numbers |= set(self.indices.values())
        return numbers | set(self.sink_numbers if self.program.result in stage.results else ())


def parted(values: Sequence[Value], sizes: Sequence[int]) -> list[Sequence[Value]]:
    """Values of several folds, those of each, of which it carries so many."""
    ends = list(accumulate(sizes))
    return [values[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _nothing(values: Sequence[Value]) -> None:
    """Drop what a step without folds gives: no values."""
    assert not values


def factors(value: SSAValue) -> tuple[SSAValue, ...]:
    """The factors of a product of floats that nothing else needs; any other value itself."""
    op = value.owner
    if isinstance(op, arith.MulfOp) and value.has_one_use():
        return tuple(op.operands)
    return (value,)


def captured(stage: StageOp, scalars: Mapping[SSAValue, Value]) -> list[SSAValue]:
    """The scalars around a stage that its body uses."""
    body = stage.body.block
    return list(dict.fromkeys(value for op in body.ops for value in op.operands if value in scalars))
