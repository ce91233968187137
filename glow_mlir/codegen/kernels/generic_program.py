"""What a `generic` instruction computes, and how its operands and rows lie: what its kernels have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap

from glow_mlir.codegen.access import computed, lanes_for
from glow_mlir.codegen.builder.nests import Extents
from glow_mlir.codegen.builder.types import f64, type_info
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.folds import Fold, fold_for
from glow_mlir.codegen.kernels.side_by_side import Alone, normalization_alone, side_by_side, softmax_alone
from glow_mlir.codegen.lines import Lines
from glow_mlir.codegen.math.narrow import held
from glow_mlir.codegen.scalar_body import can_emit, count_chains
from glow_mlir.codegen.selection.kernel import (
    Tiles,
    kind_of,
    tiles_of,
)
from glow_mlir.dialects.affine_maps import strides_over
from glow_mlir.dialects.element_types import CODES_OF_A_BYTE, byte_width, is_float, is_narrow
from glow_mlir.dialects.generic_form import GenericForm
from glow_mlir.dialects.glow_high.base import operand_groups
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.generic import GenericOp, yielded_rows
from glow_mlir.dialects.glow_low.body import Body
from glow_mlir.dialects.glow_low.memory import contiguous_strides, strides_of
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of, split_strides
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.stages import (
    POSITION_FOLDS,
    RUNNING_FOLDS,
    IndicesOp,
    RowType,
    StageOp,
    dimensions_of,
    element_at,
    scalar_ops_of,
    stages_of,
)
from glow_mlir.dialects.target import Target
from glow_mlir.ir.traversal import own_operations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes

LINES = "lines"
"""The tile that says how many lines are taken side by side."""

MAX_FORMS = 1 << 8
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
        if len(_FORMS) >= MAX_FORMS:
            _FORMS.clear()
        _FORMS[key] = op.generic_form()
    return _FORMS[key]


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
        return self.form.space(self.op.views())

    @property
    def result_view(self) -> Sizes:
        """The sizes in which the form sees the result."""
        return self.form.result_sizes(self.op.views())

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
    def stages(self) -> list[StageOp]:
        """The stages that read elements, in order."""
        return [stage for stage in stages_of(self.block) if not is_count(stage)]

    @property
    def runs_along_lines(self) -> bool:
        """Whether each stage runs along all dimensions that are not parallel, and folds along all of them or none."""
        return all(stage.space == self.rows and stage.folded in ((), self.rows) for stage in self.stages)

    @property
    def is_generic(self) -> bool:
        """Whether it is `generic` itself, and no operator of another name."""
        return kind_of(self.op) is GenericOp

    @property
    def is_reduction(self) -> bool:
        """Whether a line has one element of the result."""
        return not isinstance(self.result.type, RowType)

    @property
    def moves_slices(self) -> bool:
        """Whether each element of the result is one at indices, as it is."""
        return bool(self.form.reads) and self.form.moves

    @property
    def is_lookup(self) -> bool:
        """Whether that is the entry of a table of bytes for each code of 8 bits, none of which is out of range."""
        if not self.moves_slices or len(self.form.reads) != 1:
            return False
        inputs = self.op.inputs()
        table, codes = inputs[self.block.args.index(self.result)], inputs[self.form.reads[0].operand]
        are_bytes = all(byte_width(element_of(value)) == 1 for value in (table, codes))
        return are_bytes and sizes_of(table) == (CODES_OF_A_BYTE,) and sizes_of(codes) == sizes_of(self.op.outputs()[0])

    def operand_strides(self) -> list[Shape]:
        """By how many elements each dimension moves the result, and then each operand."""
        *maps, last = self.form.maps
        values = [*self.op.outputs(), *self.op.read_values()]
        views = [self.result_view, *self.op.views()]
        return [
            strides_over(affine, split_strides(sizes_of(value), strides_of(value), view))
            for affine, value, view in zip((last, *maps), values, views, strict=True)
        ]

    def axis_strides(self, number: int) -> Shape:
        """By how many elements each axis moves an operand, as its map sees it."""
        value, view = self.op.read_values()[number], self.op.views()[number]
        return split_strides(sizes_of(value), strides_of(value), view)

    @property
    def indices(self) -> list[IndicesOp]:
        """The rows of indices."""
        return [op for op in own_operations(self.block) if isinstance(op, IndicesOp)]

    @property
    def indexed(self) -> list[int]:
        """The dimensions whose indices are read, or folded into positions."""
        positions = [stage.folded[0] for stage in self.stages if has_positions(stage)]
        return sorted({*(op.dimension for op in self.indices), *positions})

    def index_strides(self) -> list[Shape]:
        """By how much each dimension moves the indices of those that are indexed."""
        dimensions = range(len(self.form.kinds))
        return [tuple(int(number == own) for number in dimensions) for own in self.indexed]

    def plane_strides(self, planes: Sequence[Shape]) -> list[Shape]:
        """By how many elements each dimension moves planes that move with the axes of the result."""
        return self._split(planes, self.op.outputs()[0], self.result_view, self.form.maps[-1])

    def prologue_strides(self, planes: Sequence[Shape]) -> list[Shape]:
        """By how many elements each dimension moves planes that move with the axes of the first operand."""
        return self._split(planes, self.op.inputs()[0], self.op.views()[0], self.form.maps[0])

    def _split(self, planes: Sequence[Shape], value: SSAValue, view: Sizes, affine: AffineMap) -> list[Shape]:
        """By how many elements each dimension moves planes that move with the axes of an operand."""
        return [strides_over(affine, split_strides(sizes_of(value), strides, view)) for strides in planes]

    @property
    def reads_first_once(self) -> bool:
        """Whether one stage alone reads the first operand, each element once: by index, it may read some often."""
        is_read_once = list(self.op.read_operands()).count(0) == 1
        return is_read_once and len(list(self.block.args[0].uses)) == 1 and not self.form.reads

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
        """The type that decides how many lanes there are: the widest of the first operand and of what is folded."""
        folded = [element for stage in self.stages for part in initial_of(stage) for _, element in part]
        return max((computed(element_of(self.op.inputs()[0])), *folded), key=lambda element: type_info(element).bits)

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
        """How many lines should pay to take side by side: one of a reduction, so that its sums have one order."""
        return 1 if self.is_reduction or self.runs else side_by_side(lines, self.element, target, self.alone(target))

    @property
    def runs(self) -> bool:
        """Whether a stage has running totals, whose lines are in order."""
        return any(word in RUNNING_FOLDS for stage in self.stages for word in stage.words)

    def width(self, target: Target, count: int, is_across: bool) -> int:
        """How many lanes a line, or some lines across, have at once, where so many lines are taken side by side."""
        costs = kernel_costs(target)
        if self.runs:
            carrier = f64 if is_float(self.element) and target.doubles else self.element
            return lanes_for(target, carrier, (0,), max(1, costs.independent_vectors // 2)) if is_across else 1
        # As many vectors hide the latency of an addition, and read whole lines where rows are far apart.
        vectors = costs.independent_sums if self.is_reduction else costs.independent_vectors // count
        if any(map(has_positions, self.stages)):
            vectors = max(1, costs.independent_vectors // 2)  # A step is several instructions, and carries two vectors.
        return lanes_for(target, self.element, (0,), vectors)

    def planned_lines(self) -> Lines:
        """The lines as machine code has them: with sizes in the place of what they are when it runs."""
        behind, before = (plane_strides_of(body) for body in (self.op.epilogue, self.op.prologue))
        planes = [*self.plane_strides(behind), *self.prologue_strides(before)]
        return self.lines(
            self.space, [*self.operand_strides(), *planes, *self.index_strides(), *self.element_strides()]
        )

    def element_strides(self) -> list[Shape]:
        """By how many elements each dimension moves the elements at which axes are read."""
        return [strides_over(read.affine, self.axis_strides(read.operand)) for read in self.form.reads]

    def elements_a_line(self, target: Target) -> int:
        """How often rows that are kept lie in memory: for each lane that is a line, or for each line side by side."""
        if not self.kept or not self.runs_along_lines:
            return 1
        lines = self.planned_lines()
        count = self.count(lines, target)
        return self.width(target, count, True) if lines.across else count

    def candidates(self, target: Target) -> list[Tiles]:
        """How many lines can be taken side by side, the best guess first; empty tiles where there is no choice."""
        if self.is_reduction or self.runs or not self.runs_along_lines:
            return [{}]
        lines = self.planned_lines()
        most = lines.side_by_side(kernel_costs(target).independent_vectors)
        guess = self.best_count(lines, target)
        others = (1 << power for power in range(most.bit_length()))
        return (
            [{LINES: count} for count in (guess, *(other for other in others if other != guess))] if most > 1 else [{}]
        )


def can_run(form: GenericForm) -> bool:
    """Whether machine code runs a chain of stages: what it computes, keeps and gives are no narrow elements."""
    rows = (value.type for stage in stages_of(form.block) for value in stage.results)
    stored = [form.element, *(element_at(type_) for type_ in rows if isinstance(type_, RowType))]
    is_able = all(map(can_emit, scalar_ops_of(form.block)))
    return is_able and (form.moves or not any(map(is_narrow, stored)))


def plane_strides_of(body: Body | None) -> list[Shape]:
    """By how many elements the axes that a body moves along move its further operands."""
    if body is None:
        return []
    operands = zip((*body.targets, *body.sources), body.maps, strict=True)
    return [strides_over(affine, strides_of(value)) for value, affine in operands]


def is_count(stage: StageOp) -> bool:
    """Whether a stage counts indices: it adds up one number."""
    return not stage.inputs and stage.words == ["add"] and isinstance(stage.yielded[0].owner, arith.ConstantOp)


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


def initial_of(stage: StageOp) -> list[list[tuple[float, Attribute]]]:
    """What the values that each fold of a stage carries start from, and their element types."""
    if any(word in RUNNING_FOLDS for word in stage.words):
        return [[(0, held(stage.yielded[0].type))]]
    return [fold.initial(value.type) for fold, value in zip(folds_of(stage), stage.yielded, strict=False)]


def folds_of(stage: StageOp) -> list[Fold]:
    """How machine code folds what a stage yields."""
    return [fold_for(word, value.type) for word, value in zip(stage.words, stage.yielded, strict=False)]


def has_positions(stage: StageOp) -> bool:
    """Whether a stage folds elements into the index of one."""
    return any(word in POSITION_FOLDS for word in stage.words)
