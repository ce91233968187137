"""
The kernel of `generic`: the chain of stages at each point of the parallel dimensions.

If every stage runs along all other dimensions, these are the lines of `codegen.lines`, several side by side or one in
each lane. Otherwise each point is computed alone, and each stage has its own lines, along the dimensions that it folds.
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

from glow_mlir.analysis.cost import work_at_points
from glow_mlir.codegen.access import lanes_for, load_as
from glow_mlir.codegen.bodies import ExtraOperand, Prologue, Sink, prologue_of
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest
from glow_mlir.codegen.builder.nests import product as steps_over
from glow_mlir.codegen.builder.types import f64, type_info, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.folds import Combined, Position
from glow_mlir.codegen.kernels.expressions.generic_program import (
    LINES,
    Program,
    can_run,
    folds_of,
    initial_of,
    is_count,
    lines_over,
)
from glow_mlir.codegen.kernels.expressions.indexed_reads import Element, Slices, checked, elements_of
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
    """The destination of results that already have the form in memory."""

    @staticmethod
    def of(call: KernelCall) -> Stored:
        plain = Sink.of(call)
        return Stored(plain.operand, plain.epilogue, plain.extras)

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
    """Whether the kernel takes operands whose maps contain sums."""

    def accepts(self, op: GenericOp | Expressed) -> bool:
        program = Program.of(op)
        # Operators that fold nothing are left to the lowering: elementwise operators are fused.
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
        space = static(program.space)
        steps = math.prod(space[number] for number in program.parallel)
        if program.moves_slices:
            steps = Slices.of(program).steps(target)
        if program.form.reads and isinstance(op, Instruction):
            # Its work does not depend on the size of a table.
            costs = kernel_costs(target)
            steps = min(steps, work_at_points(op, math.prod(space), costs) // costs.part_operations)
        return {"lines": steps} if steps > 1 else {}

    def emit(self, call: KernelCall) -> None:
        program = Program.of(call.op)
        if program.moves_slices:
            Slices.of(program).emit(call, operands_read(call, program), Stored.of(call))
        elif program.runs_along_lines:
            AlongLines.of(call, program).emit()
        else:
            AtPoints.of(call, program).emit()


@dataclass(frozen=True)
class RowOperand:
    """The memory of the elements of a row: an operand, or a buffer of the row."""

    number: int
    """Its number among the walked operands."""
    operand: Operand | ExtraOperand
    kept: int = 0
    """The number of elements of a kept row; 0 for an operand."""
    elements: Mapping[int, Element] = field(default_factory=dict[int, Element])
    """Numbers of walked operands → their elements that are indices of axes of this operand."""


def operands_read(call: KernelCall, program: Program) -> list[Operand]:
    """The operands that a program reads, as often as it does, in order."""
    own = [operand for name, _ in operand_groups(call.op) for operand in call.many(name) if name in program.names]
    return [own[number] for number in program.op.read_operands()]


@dataclass
class Emission(ABC):
    """One chain of stages being emitted: the operands of its rows, and its scalars."""

    call: KernelCall
    program: Program
    sink: Stored
    row_operands: dict[SSAValue, RowOperand]
    strides: list[Shape]
    """
    The strides of each dimension for all walked operands: result, operands, extra operands, indices and kept rows.
    """
    prologue: Prologue | None
    prologue_operands: list[RowOperand]
    """The extra operands of the prologue."""
    indices: dict[int, int]
    """Dimensions whose indices are read → the numbers of the indices among the walked operands."""
    chosen: dict[tuple[int, int, int], Value] = field(default_factory=dict[tuple[int, int, int], Value])
    """Indices that are the same along a line, by number of the walked operand, line and lane."""

    @classmethod
    def of(cls, call: KernelCall, program: Program) -> Self:
        """Return the emission of the instruction of a call."""
        sink = Stored.of(call)
        strides = [*program.operand_strides(), *program.extra_strides([extra.strides for extra in sink.extras])]
        operands = operands_read(call, program)
        rows: dict[SSAValue, RowOperand] = {}
        for number, (argument, operand) in enumerate(zip(program.block.args, operands, strict=True)):
            elements = elements_of(call, program, number, operands)
            rows[argument] = RowOperand(number + 1, operand, 0, dict(enumerate(elements, len(strides))))
            strides += [element.steps for element in elements]
        if program.in_result is not None:
            rows[program.in_result] = RowOperand(0, sink.operand)
        prologue = prologue_of(call)
        extras = () if prologue is None else prologue.extras
        first = [RowOperand(number, extra) for number, extra in enumerate(extras, len(strides))]
        strides += program.prologue_strides([extra.strides for extra in extras])
        indices = {dimension: number for number, dimension in enumerate(program.indexed, len(strides))}
        strides += program.index_strides()
        for value, operand in zip(program.kept, call.many("scratch"), strict=False):
            rows[value] = RowOperand(len(strides), operand, program.kept_size(value))
            strides.append(program.kept_strides(value))
        return cls(call, program, sink, rows, strides, prologue, first, indices)

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    @property
    def sink_numbers(self) -> list[int]:
        """The numbers of the result and the extra operands of the epilogue among the walked operands."""
        first = 1 + len(self.program.block.args)
        return [0, *range(first, first + len(self.sink.extras))]

    def read(self, line: Line, value: SSAValue, offsets: Sequence[Index], lanes: int) -> Value:
        """Load `lanes` elements of a row for each line, in their form in memory, after the prologue if there is one."""
        if isinstance(value.owner, IndicesOp):
            return self._indices(line, value.owner.dimension, element_at(value.type), offsets, lanes)
        found = self._elements(line, self.row_operands[value], in_memory(element_at(value.type)), offsets, lanes)
        if self.prologue is None or value is not self.program.block.args[0]:
            return found
        extras = [self._elements(line, row, row.operand.element, offsets, lanes) for row in self.prologue_operands]
        return self.prologue.apply(self.b, found, extras)

    def _indices(self, line: Line, dimension: int, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """Return the indices of neighbours along a dimension, for each line."""
        b, number = self.b, self.indices[dimension]
        first = b.splat(b.cast(b.index(offsets[number]), element), lanes)
        one = first + b.iota(element, lanes) if lanes > 1 and line.lines.innermost(number) else first
        return concatenated(b, [one] * line.count)

    def _elements(self, line: Line, row: RowOperand, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """Load `lanes` elements of a type for each line, in their form in memory."""
        if row.elements:
            return self._chosen(line, row, element, offsets, lanes)
        step, first = line.lines.innermost(row.number), offsets[row.number]
        if self.has_lanes(line, row):
            return load_as(self.b, row.operand, element, first * line.width, 1, lanes)
        jump = self.jump(line, row) if line.count > 1 else 0
        one = load_as(self.b, row.operand, element, first, step, lanes)
        others = (
            load_as(self.b, row.operand, element, moved_by(first, number, jump), step, lanes) if jump else one
            for number in range(1, line.count)
        )
        return concatenated(self.b, [one, *others])

    def _chosen(self, line: Line, row: RowOperand, element: Attribute, offsets: Sequence[Index], lanes: int) -> Value:
        """Load elements at indices: `lanes` of a line at once if the indices are the same for all, else one by one."""
        lines, step = line.lines, line.lines.innermost(row.number)
        width = 1 if any(lines.innermost(number) for number in row.elements) else lanes
        found: list[Value] = []
        for own, lane in product(range(line.count), range(0, lanes, width)):
            first = self._moved(line, row.number, offsets, own, lane)
            for number, read in row.elements.items():
                is_fixed = not any(lines.along_steps[number])
                if (chosen := self.chosen.get((number, own, lane)) if is_fixed else None) is None:
                    chosen = self._index(line, number, read, offsets, own, lane)
                first = chosen * read.stride + first
            found.append(load_as(self.b, row.operand, element, first, step, width))
        return concatenated(self.b, found)

    def _choose(self, line: Line) -> None:
        """Load and check the indices that are the same along a line, or along each of the lines in its lanes."""
        self.chosen.clear()
        lines = line.lines
        used = {number: read for row in self.row_operands.values() for number, read in row.elements.items()}
        for number, read in used.items():
            if any(lines.along_steps[number]):
                continue
            lanes = line.lanes if lines.innermost(number) else 1
            for own, lane in product(range(line.count), range(lanes)):
                self.chosen[number, own, lane] = self._index(line, number, read, line.starts, own, lane)

    def _index(self, line: Line, number: int, read: Element, offsets: Sequence[Index], own: int, lane: int) -> Value:
        """Load the index for a lane of one of the lines side by side, and check it."""
        return checked(self.call, read.read(self.b, self._moved(line, number, offsets, own, lane)), read.size)

    def _moved(self, line: Line, number: int, offsets: Sequence[Index], own: int, lane: int) -> Index:
        """Return the offset of an element for a lane of one of the lines side by side."""
        start = moved_by(offsets[number], own, line.lines.outer_steps[number][-1] if own else 0)
        return moved_by(start, lane, line.lines.innermost(number) if lane else 0)

    def keep(self, line: Line, value: SSAValue, offsets: Sequence[Index], stored: Value) -> None:
        """Store elements of a row in their form in memory: in its buffer if it is kept, in the result if it is that."""
        if value is self.program.result:
            line.store(self.sink_numbers, self.sink, offsets, stored)
        if (row := self.row_operands.get(value)) is None:
            return
        element, first = in_memory(element_at(value.type)), offsets[row.number]
        if self.has_lanes(line, row):
            row.operand.pointer.at(first * line.width, element).store(stored)
            return
        jump = self.jump(line, row) if line.count > 1 else 0
        for number, part in enumerate(line.parts(stored)):
            row.operand.pointer.at(moved_by(first, number, jump), element).store(part)

    @abstractmethod
    def has_lanes(self, line: Line, row: RowOperand) -> bool:
        """Whether a row has an element for each lane at each index."""

    @abstractmethod
    def jump(self, line: Line, row: RowOperand) -> int:
        """The distance between elements of a row for lines side by side."""

    def step(self, line: Line, stage: StageOp, scalars: Mapping[SSAValue, Value]) -> Step:
        """Return the step of a stage for neighbours along a line: it stores kept rows and takes in what it folds."""
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
        """Run a stage along a line, and add its folds to `scalars`."""
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
        """Store the running totals of a line, or of one line per lane; totals of floats are carried in f64."""
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
            index = extent - 1 - loop.index if reverse else loop.index
            offsets = [moved_by(first, index, step) for first, step in zip(line.starts, steps, strict=True)]
            inputs = [self.read(line, source, offsets, lanes) for source in stage.inputs]
            (stored,) = emit_scalar_body(b, block, inputs, [value], lanes, around)
            (total,) = loop.values
            following = fold.combine(b, total, b.cast(from_memory(b, stored, value.type), carrier))
            found = b.cast(total if exclusive else following, element)
            self.keep(line, result, offsets, to_memory(b, found, value.type))
            loop.set(following)

    def counted(self, line: Line, stage: StageOp) -> Value:
        """Return the number of indices that a stage counts, in its type, for each lane."""
        space = self.call.extents(self.program.space)
        (value,) = stage.yielded
        times = self.b.index(steps_over(space[number] for number in stage.space))
        count = self.b.cast(times, value.type) * emit_scalar_body(self.b, stage.body.block, [], [value], 1)[0]
        return self.b.splat(count, line.lanes * line.count)

    def run(self, line: Line, stage: Callable[[StageOp, dict[SSAValue, Value]], None]) -> None:
        """Run the chain for a line, whose starts are the offsets of scalars; `stage` runs a stage."""
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
        """The offsets at which the result of a line is stored."""
        return line.starts

    def read_scalars(self, line: Line, scalars: dict[SSAValue, Value]) -> None:
        """Load the operands that have one element per line."""
        for argument in self.program.block.args:
            if not isinstance(argument.type, RowType) and argument.first_use is not None:
                value = self.read(line, argument, line.starts, line.lanes)
                scalars[argument] = from_memory(self.b, value, argument.type)


class AlongLines(Emission):
    """Stages along the lines of the whole index space."""

    def has_lanes(self, line: Line, row: RowOperand) -> bool:
        return row.kept > 0 and line.lines.across

    def jump(self, line: Line, row: RowOperand) -> int:
        return row.kept or line.lines.outer_steps[row.number][-1]

    def emit(self) -> None:
        call, program = self.call, self.program
        space = call.extents(program.space)
        lines = program.lines(space, self.strides)
        count = program.count(lines, call.target)
        lines.each(self.b, program.width(call.target, count, lines.across), self._line, call.share("lines"), count)

    def _line(self, line: Line) -> None:
        """Run the chain along a line, or along several lines side by side."""
        self.run(line, lambda stage, scalars: self.stage(line, stage, scalars))


class AtPoints(Emission):
    """Stages at a point of the parallel dimensions, each along its own lines."""

    def has_lanes(self, line: Line, row: RowOperand) -> bool:
        return False

    def jump(self, line: Line, row: RowOperand) -> int:
        return line.lines.outer_steps[row.number][-1]

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
        """Run a stage along the dimensions that it folds, or along all of its dimensions."""
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
        """Return the numbers of the walked operands that a stage reads or writes."""
        values = [value for value in (*stage.inputs, *stage.results) if value in self.row_operands]
        numbers = {self.row_operands[value].number for value in values}
        numbers |= {number for value in values for number in self.row_operands[value].elements}
        numbers |= set(self.indices.values())
        return numbers | set(self.sink_numbers if self.program.result in stage.results else ())


def parted(values: Sequence[Value], sizes: Sequence[int]) -> list[Sequence[Value]]:
    """Split values of several folds into those of each fold, which carries `sizes` values."""
    ends = list(accumulate(sizes))
    return [values[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _nothing(values: Sequence[Value]) -> None:
    """Check that a step without folds returns no values."""
    assert not values


def factors(value: SSAValue) -> tuple[SSAValue, ...]:
    """Return the factors of a product of floats that has no other use; for other values, the value itself."""
    op = value.owner
    if isinstance(op, arith.MulfOp) and value.has_one_use():
        return tuple(op.operands)
    return (value,)


def captured(stage: StageOp, scalars: Mapping[SSAValue, Value]) -> list[SSAValue]:
    """Return the scalars defined outside of a stage that its body uses."""
    body = stage.body.block
    return list(dict.fromkeys(value for op in body.ops for value in op.operands if value in scalars))
