"""
The kernel of `generic`: the chain of stages at each point of the parallel dimensions.

Where every stage runs along all other dimensions, these are the lines of `codegen.lines`, several side by side or one
in each lane. Else a point is taken alone, and each stage has lines of its own: along what it folds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, SSAValue

from glow_mlir.codegen.access import computed, lanes_for, load_as
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.reductions import highest, lowest
from glow_mlir.codegen.kernels.side_by_side import Alone, normalization_alone, side_by_side, softmax_alone
from glow_mlir.codegen.lines import Line, Lines, Step, concatenated, moved_by
from glow_mlir.codegen.math.narrow import from_memory, in_memory, to_memory
from glow_mlir.codegen.scalar_body import can_emit, count_chains, emit_scalar_body, emit_scalar_ops
from glow_mlir.codegen.selection.kernel import (
    Buffer,
    Choice,
    Kernel,
    KernelCall,
    Operand,
    Tiles,
    kind_of,
    tiles_of,
)
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.affine_maps import dimensions_in, strides_over
from glow_mlir.dialects.element_types import is_bool, is_narrow
from glow_mlir.dialects.generic_form import GenericForm
from glow_mlir.dialects.glow_high.base import operand_groups
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp, yielded_rows
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import contiguous_strides, strides_of
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of
from glow_mlir.dialects.sizes import largest, static
from glow_mlir.dialects.stages import RowType, StageOp, dimensions_of, element_at, scalar_ops_of, stages_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

LINES = "lines"
"""The tile that says how many lines are taken side by side."""

Combine = Callable[[Builder, Value, Value], Value]


def _select(predicate: str) -> Combine:
    return lambda b, x, y: b.select(b.compare(predicate, x, y), x, y)


COMBINE: Mapping[str, tuple[Callable[[Attribute], float], Combine]] = {
    "add": (lambda _: 0, lambda b, x, y: x + y),
    "mul": (lambda _: 1, lambda b, x, y: x * y),
    "maximumf": (lowest, lambda b, x, y: b.maximum(x, y)),
    "minimumf": (highest, lambda b, x, y: b.minimum(x, y)),
    "maxnumf": (lowest, lambda b, x, y: b.max(y, x)),
    "minnumf": (highest, lambda b, x, y: b.min(y, x)),
    "maxsi": (lowest, _select("sgt")),
    "minsi": (highest, _select("slt")),
    "maxui": (lambda _: 0, _select("ugt")),
    "minui": (lambda _: -1, _select("ult")),
    "and": (lambda _: -1, lambda b, x, y: x & y),
    "or": (lambda _: 0, lambda b, x, y: x | y),
    "xor": (lambda _: 0, lambda b, x, y: x ^ y),
}
"""Word of a fold → what it starts from, for an element type, and how it takes in an element, the second one."""


MOST_FORMS = 1 << 8
"""Of how many different operators the form is kept."""

_FORMS: dict[object, GenericForm] = {}
"""Kind, types and properties of an operator → its form."""


def form_of(op: GenericOp | Expressed) -> GenericForm:
    """The form of `generic` of an operator, or of its instruction."""
    if kind_of(op) is GenericOp:
        return op.generic_form()
    definition = kind_of(op).get_irdl_definition()
    own = {name for name, _ in definition.operands}
    present = [(name, value) for name, group in operand_groups(op) for value in group if value is not None]
    operands = tuple((name, sizes_of(value), element_of(value)) for name, value in present if name in own)
    properties = tuple((name, value) for name, value in op.properties.items() if name in definition.properties)
    key = kind_of(op), operands, properties
    if key not in _FORMS:
        if len(_FORMS) >= MOST_FORMS:
            _FORMS.clear()
        _FORMS[key] = op.generic_form()
    return _FORMS[key]


@dataclass(frozen=True)
class Stored(Sink):
    """Where results go that are as memory has them."""

    def store(
        self, b: Builder, offsets: Sequence[Index], steps: Sequence[int], value: Value, mask: Value | None = None
    ) -> None:
        """Store neighbouring elements, see `Sink.store`."""
        if self.epilogue is None:
            self.operand.pointer.at(offsets[0], in_memory(self.operand.element)).store(value)
        else:
            super().store(b, offsets, steps, value, mask)


@dataclass(frozen=True)
class Program:
    """What a `generic` instruction computes, and how its operands and rows lie over its index space."""

    op: Any
    """The instruction; its class is derived."""
    form: GenericForm

    @staticmethod
    def of(op: GenericOp | Expressed) -> Program:
        """The program of an instruction, or of its operator."""
        return Program(op, form_of(op))

    @property
    def block(self) -> Block:
        """The chain of stages."""
        return self.form.block

    @property
    def rows(self) -> Shape:
        """The dimensions that are not parallel."""
        return self.form.rows

    @property
    def parallel(self) -> Shape:
        """The parallel dimensions."""
        return tuple(number for number in range(len(self.form.kinds)) if number not in self.rows)

    @property
    def space(self) -> Sizes:
        """The sizes of the index space."""
        return self.form.space([sizes_of(value) for value in self.op.inputs()])

    @property
    def names(self) -> frozenset[str]:
        """The names of the operands that it reads."""
        return self.op.OPERATOR_INPUTS

    @property
    def result(self) -> SSAValue:
        """The row or scalar that is stored."""
        return yielded_rows(self.block)[0]

    @property
    def kept(self) -> list[SSAValue]:
        """The rows that later stages read, which have memory of their own."""
        return [value for value in self._read_again() if value is not self.in_result]

    @property
    def in_result(self) -> SSAValue | None:
        """
        A row that is in the result until the last stage, which reads each of its elements before it writes it.

        There is none where an epilogue stores other elements, or where the result is read before.
        """
        last = self.result.owner
        if self.op.bodies or not isinstance(last, StageOp) or last.words:
            return None
        rows = [value for value in self._read_again() if value in last.inputs and value.type == self.result.type]
        return rows[-1] if rows and len(last.results) == 1 and self.result.has_one_use() else None

    def _read_again(self) -> list[SSAValue]:
        """The rows that later stages read."""
        made = [result for stage in stages_of(self.block) for result in stage.results]
        rows = [value for value in made if isinstance(value.type, RowType)]
        return [value for value in rows if any(isinstance(use.operation, StageOp) for use in value.uses)]

    @property
    def runs_along_lines(self) -> bool:
        """Whether each stage runs along all dimensions that are not parallel, and folds along all of them or none."""
        return all(stage.space == self.rows and stage.folded in ((), self.rows) for stage in stages_of(self.block))

    def operand_strides(self) -> list[Shape]:
        """By how many elements each dimension moves the result, and then each operand."""
        *maps, last = self.form.maps
        values = [*self.op.outputs(), *self.op.inputs()]
        return [strides_over(affine, strides_of(value)) for affine, value in zip((last, *maps), values, strict=True)]

    def plane_strides(self, planes: Sequence[Shape]) -> list[Shape]:
        """By how many elements each dimension moves planes that move with the axes of the result."""
        axes = dimensions_in(self.form.maps[-1])
        found: list[Shape] = []
        for strides in planes:
            steps = [0] * len(self.form.kinds)
            for axis, stride in zip(axes, strides, strict=True):
                steps[axis] = stride
            found.append(tuple(steps))
        return found

    def kept_strides(self, value: SSAValue) -> Shape:
        """By how many elements each dimension moves a row that is kept: it lies densely, for the largest sizes."""
        space, dimensions = self.space, dimensions_of(value.type)
        dense = contiguous_strides(tuple(largest(space[number]) for number in dimensions))
        steps = dict(zip(dimensions, dense, strict=True))
        return tuple(steps.get(number, 0) for number in range(len(space)))

    def kept_size(self, value: SSAValue) -> int:
        """How many elements a row that is kept has at most."""
        space = self.space
        return math.prod(largest(space[number]) for number in dimensions_of(value.type))

    @property
    def element(self) -> Attribute:
        """The type that decides how many lanes there are: that of the first operand."""
        return computed(element_of(self.op.inputs()[0]))

    def alone(self, target: Target) -> Alone:
        """When a line is taken alone: functions take long enough for others beside it to hide more."""
        chains = sum(count_chains(stage.body.block) for stage in stages_of(self.block))
        return softmax_alone(target) if chains else normalization_alone(target)

    def lines(self, space: Extents | Sizes, strides: Sequence[Shape]) -> Lines:
        """The lines of the whole index space."""
        return lines_over(space, range(len(space)), self.rows, strides)

    def count(self, lines: Lines, target: Target) -> int:
        """How many lines are taken side by side: as many as was chosen, else as many as should pay."""
        chosen = tiles_of(self.op).get(LINES)
        return self.best_count(lines, target) if chosen is None else chosen

    def best_count(self, lines: Lines, target: Target) -> int:
        """How many lines should pay to take side by side."""
        return side_by_side(lines, self.element, target, self.alone(target))

    def width(self, target: Target, count: int) -> int:
        """How many lanes a line has at once, where so many lines are taken side by side."""
        return lanes_for(target, self.element, (0,), kernel_costs(target).independent_vectors // count)

    def planned_lines(self) -> Lines:
        """The lines as machine code has them: with sizes in the place of what they are when it runs."""
        body = self.op.epilogue
        operands = () if body is None else zip((*body.targets, *body.sources), body.maps, strict=True)
        planes = [strides_over(affine, strides_of(value)) for value, affine in operands]
        return self.lines(self.space, [*self.operand_strides(), *self.plane_strides(planes)])

    def elements_a_line(self, target: Target) -> int:
        """How often rows that are kept lie in memory: for each lane that is a line, or for each line side by side."""
        if not self.runs_along_lines:
            return 1
        lines = self.planned_lines()
        count = self.count(lines, target)
        return self.width(target, count) if lines.across else count

    def candidates(self, target: Target) -> list[Tiles]:
        """How many lines can be taken side by side, the best guess first; empty tiles where there is no choice."""
        if not self.runs_along_lines:
            return [{}]
        lines = self.planned_lines()
        most = lines.side_by_side(kernel_costs(target).independent_vectors)
        guess = self.best_count(lines, target)
        others = (1 << power for power in range(most.bit_length()))
        return (
            [{LINES: count} for count in (guess, *(other for other in others if other != guess))] if most > 1 else [{}]
        )


def can_run(form: GenericForm) -> bool:
    """Whether machine code runs a chain of stages: what it keeps and gives are no truth values or narrow elements."""
    rows = (value.type for stage in stages_of(form.block) for value in stage.results)
    stored = [form.element, *(element_at(type_) for type_ in rows if isinstance(type_, RowType))]
    is_able = all(map(can_emit, scalar_ops_of(form.block)))
    return is_able and not any(is_bool(element) or is_narrow(element) for element in stored)


@kernel("generic")
class GenericKernel(Kernel[GenericOp | Expressed]):
    """The stages of `generic`, and of all operators that an expression defines, at each parallel point."""

    name = "generic"
    NAMED_BY_INSTRUCTION = True
    AXES = ("lines",)
    EPILOGUE = True
    RUN_TIME_SIZES = True
    SUMMING = (LINES,)

    def accepts(self, op: GenericOp | Expressed) -> bool:
        return can_run(form_of(op))

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
        return {"lines": math.prod(space[number] for number in program.parallel)}

    def emit(self, call: KernelCall) -> None:
        program = Program.of(call.op)
        if program.runs_along_lines:
            AlongLines.of(call, program).emit()
        else:
            AtPoints.of(call, program).emit()


@dataclass(frozen=True)
class Place:
    """Where the elements of a row are: an operand, or memory of the row's own."""

    number: int
    """Which of what is walked it is."""
    operand: Operand
    kept: int = 0
    """How many elements a row that is kept has; 0 for an operand."""


@dataclass
class Emission(ABC):
    """One chain of stages being emitted: the places of its rows, and the scalars that there are."""

    call: KernelCall
    program: Program
    sink: Stored
    places: dict[SSAValue, Place]
    strides: list[Shape]
    """By how many elements each dimension moves what is walked: result, operands, planes, and rows that are kept."""

    @classmethod
    def of(cls, call: KernelCall, program: Program) -> Self:
        """The emission of the instruction of a call."""
        plain = Sink.of(call)
        sink = Stored(plain.operand, plain.epilogue, plain.planes)
        strides = [*program.operand_strides(), *program.plane_strides([plane.strides for plane in sink.planes])]
        operands = [
            operand for name, _ in operand_groups(call.op) for operand in call.many(name) if name in program.names
        ]
        places: dict[SSAValue, Place] = {
            argument: Place(number, operand)
            for number, (argument, operand) in enumerate(zip(program.block.args, operands, strict=True), 1)
        }
        if program.in_result is not None:
            places[program.in_result] = Place(0, sink.operand)
        for value, operand in zip(program.kept, call.many("scratch"), strict=False):
            places[value] = Place(len(strides), operand, program.kept_size(value))
            strides.append(program.kept_strides(value))
        return cls(call, program, sink, places, strides)

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
        """Elements of a row as memory has them, `lanes` of each line."""
        place = self.places[value]
        step, first = line.lines.innermost(place.number), offsets[place.number]
        element = in_memory(element_at(value.type))
        if self.has_lanes(line, place):
            return load_as(self.b, place.operand, element, first * line.width, 1, lanes)
        jump = self.jump(line, place) if line.count > 1 else 0
        one = load_as(self.b, place.operand, element, first, step, lanes)
        others = (
            load_as(self.b, place.operand, element, moved_by(first, number, jump), step, lanes) if jump else one
            for number in range(1, line.count)
        )
        return concatenated(self.b, [one, *others])

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
        outputs = [_factors(value) if word == "add" else (value,) for value, word in zip(stage.yielded, words)]
        outputs += [(value,) for value in stage.yielded[len(words) :]]
        kept = stage.results[len(words) :]
        used = _captured(stage, scalars)

        def step(position: Index, offsets: list[Index], lanes: int, values: list[Value]) -> list[Value]:
            inputs = [self.read(line, value, offsets, lanes) for value in stage.inputs]
            around = {value: line.spread(scalars[value], lanes) for value in used}
            flat = [value for group in outputs for value in group]
            results = iter(emit_scalar_body(self.b, block, inputs, flat, lanes * line.count, around))
            groups = [[next(results) for _ in group] for group in outputs]
            folded = [self._taken(word, before, group) for word, before, group in zip(words, values, groups)]
            for result, (stored,) in zip(kept, groups[len(words) :], strict=True):
                self.keep(line, result, offsets, stored)
            return folded

        return step

    def stage(self, line: Line, stage: StageOp, scalars: dict[SSAValue, Value]) -> None:
        """Run a stage along a line; folds of it that are scalars then are among the scalars."""
        words, step = stage.words, self.step(line, stage, scalars)
        if not words:
            line.each(lambda position, offsets, lanes: _nothing(step(position, offsets, lanes, [])))
            return
        start = initial_of(stage)
        totals = line.fold(start, step, lambda x, y: [COMBINE[w][1](self.b, p, q) for w, p, q in zip(words, x, y)])
        for result, total in zip(stage.results[: len(words)], totals, strict=True):
            scalars[result] = total

    def _taken(self, word: str, before: Value, group: Sequence[Value]) -> Value:
        """A fold with an element more: a sum of a product takes its factors at once."""
        if len(group) == 2:
            return self.b.fma(group[0], group[1], before)
        return COMBINE[word][1](self.b, before, group[0])

    def run(self, line: Line, stage: Callable[[StageOp, dict[SSAValue, Value]], None]) -> None:
        """Run the chain where the operands of which there is one element are at a line; `stage` runs a stage."""
        scalars: dict[SSAValue, Value] = {}
        self.read_scalars(line, scalars)
        for op in own_operations(self.program.block):
            if isinstance(op, StageOp):
                stage(op, scalars)
            elif op.results:
                emit_scalar_ops(self.b, [op], scalars, line.lanes * line.count)
        result = self.program.result
        if not isinstance(result.type, RowType):
            stored = to_memory(self.b, scalars[result], result.type)
            line.store(self.sink_numbers, self.sink, line.starts, stored)

    def read_scalars(self, line: Line, scalars: dict[SSAValue, Value]) -> None:
        """Read the operands of which a line has one element."""
        for argument in self.program.block.args:
            if not isinstance(argument.type, RowType):
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
        lines.each(self.b, program.width(call.target, count), self._line, call.share("lines"), count)

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
        count = lines.side_by_side(vectors)
        width = lanes_for(target, self.program.element, (0,), 2 * vectors if lines.across else vectors // count)
        folded = stage.results[: len(stage.words)]

        def body(line: Line) -> None:
            self.stage(line, stage, scalars)
            for result in folded:
                if isinstance(result.type, RowType):
                    self.keep(line, result, line.starts, scalars.pop(result))

        lines.each(self.b, width, body, count=count, starts=starts)

    def _walked(self, stage: StageOp) -> set[int]:
        """Which of what is walked a stage reads or writes."""
        values = [value for value in (*stage.inputs, *stage.results) if value in self.places]
        numbers = {self.places[value].number for value in values}
        return numbers | set(self.sink_numbers if self.program.result in stage.results else ())


def lines_over(
    space: Extents | Sizes, dimensions: Sequence[int], along: Sequence[int], strides: Sequence[Shape]
) -> Lines:
    """
    Lines along some dimensions of an index space, for each index of others; operands move by `strides`.

    Dimensions with long strides are outer loops, and those along lines are innermost, unless neighbours along another
    one are neighbours in memory: then lanes have a line each.
    """
    ordered = sorted(dimensions, key=lambda dimension: -sum(steps[dimension] for steps in strides))
    outer = [dimension for dimension in ordered if dimension not in along]
    inner = [dimension for dimension in ordered if dimension in along]
    is_even = bool(outer) and all(steps[outer[-1]] in (0, 1) for steps in strides)
    order = inner + outer if is_even else outer + inner
    picked = [tuple(steps[dimension] for dimension in order) for steps in strides]
    extents = cast(Extents, [space[dimension] for dimension in order])
    return Lines.of(extents, [order.index(dimension) for dimension in inner], picked)


def initial_of(stage: StageOp) -> list[tuple[float, Attribute]]:
    """What the folds of a stage start from, and their element types."""
    elements = [value.type for value in stage.yielded[: len(stage.words)]]
    return [(COMBINE[word][0](element), element) for word, element in zip(stage.words, elements)]


def _nothing(values: Sequence[Value]) -> None:
    """Drop what a step without folds gives: no values."""
    assert not values


def _factors(value: SSAValue) -> tuple[SSAValue, ...]:
    """The factors of a product of floats that nothing else needs; any other value itself."""
    op = value.owner
    if isinstance(op, arith.MulfOp) and value.has_one_use():
        return tuple(op.operands)
    return (value,)


def _captured(stage: StageOp, scalars: Mapping[SSAValue, Value]) -> list[SSAValue]:
    """The scalars around a stage that its body uses."""
    body = stage.body.block
    return list(dict.fromkeys(value for op in body.ops for value in op.operands if value in scalars))
