"""The common part of kernels of `generic`: the computation of an instruction, and the strides of its operands."""

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
from glow_mlir.codegen.kernels.elements.folds import Fold, fold_for
from glow_mlir.codegen.kernels.expressions.side_by_side import Alone, normalization_alone, side_by_side, softmax_alone
from glow_mlir.codegen.lines import Lines
from glow_mlir.codegen.math.narrow import held
from glow_mlir.codegen.scalar_body import can_emit, count_chains
from glow_mlir.codegen.selection.kernel import (
    Tiles,
    kind_of,
    tiles_of,
)
from glow_mlir.dialects.affine_maps import strides_over
from glow_mlir.dialects.element_types import VALUES_OF_A_BYTE, byte_width, is_float, is_narrow
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
"""The key in the `tiles` of an instruction for the number of lines that are computed side by side."""

MAX_FORMS = 1 << 8
"""The capacity of `_FORMS`."""

_FORMS: dict[object, GenericForm] = {}
"""Kind, types and properties of an operator → its form."""


def form_of(op: GenericOp | Expressed) -> GenericForm:
    """Return the `generic` form of an operator, or of its instruction."""
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
    """The computation of a `generic` instruction, and the strides of its operands and rows over its index space."""

    op: Any
    """The instruction; its class is derived from the operator."""
    form: GenericForm

    @staticmethod
    def of(op: GenericOp | Expressed) -> Program:
        """Return the program of an instruction, or of its operator."""
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
        """The sizes of the result as the form views it."""
        return self.form.result_sizes(self.op.views())

    @property
    def names(self) -> frozenset[str]:
        """The names of the operands that the program reads."""
        return self.op.OPERATOR_INPUTS

    @property
    def result(self) -> SSAValue:
        """The row or scalar that is stored."""
        return yielded_rows(self.block)[0]

    @property
    def kept(self) -> list[SSAValue]:
        """The rows that later stages read, which have their own buffers."""
        return [value for value in self._read_again() if value is not self.in_result]

    @property
    def in_result(self) -> SSAValue | None:
        """
        A row that is kept in the result until the last stage, which reads each element before it overwrites it.

        There is none if an epilogue stores other elements, or if the result is read before.
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
        """Whether each stage runs along all dimensions that are not parallel, and folds all of them or none."""
        return all(stage.space == self.rows and stage.folded in ((), self.rows) for stage in self.stages)

    @property
    def is_generic(self) -> bool:
        """Whether the operator is `generic` itself."""
        return kind_of(self.op) is GenericOp

    @property
    def is_reduction(self) -> bool:
        """Whether each line has one element of the result."""
        return not isinstance(self.result.type, RowType)

    @property
    def moves_slices(self) -> bool:
        """Whether each element of the result is an unchanged element at indices."""
        return bool(self.form.reads) and self.form.moves

    @property
    def is_lookup(self) -> bool:
        """Whether the program looks up 8-bit values in a table of 256 bytes, so that no index is out of range."""
        if not self.moves_slices or len(self.form.reads) != 1:
            return False
        inputs = self.op.inputs()
        table, index = inputs[self.block.args.index(self.result)], inputs[self.form.reads[0].operand]
        are_bytes = all(byte_width(element_of(operand)) == 1 for operand in (table, index))
        size = sizes_of(self.op.outputs()[0])
        return are_bytes and sizes_of(table) == (VALUES_OF_A_BYTE,) and sizes_of(index) == size

    def operand_strides(self) -> list[Shape]:
        """Return the strides of each dimension for the result, then for each operand."""
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
        """The operations whose results are indices."""
        return [op for op in own_operations(self.block) if isinstance(op, IndicesOp)]

    @property
    def indexed(self) -> list[int]:
        """The dimensions whose indices are read, or folded into positions."""
        positions = [stage.folded[0] for stage in self.stages if has_positions(stage)]
        return sorted({*(op.dimension for op in self.indices), *positions})

    def index_strides(self) -> list[Shape]:
        """Return the strides of each dimension for the indices of the `indexed` dimensions."""
        dimensions = range(len(self.form.kinds))
        return [tuple(int(number == own) for number in dimensions) for own in self.indexed]

    def extra_strides(self, extras: Sequence[Shape]) -> list[Shape]:
        """Return the strides of each dimension for extra operands with the axes of the result."""
        return self._split(extras, self.op.outputs()[0], self.result_view, self.form.maps[-1])

    def prologue_strides(self, extras: Sequence[Shape]) -> list[Shape]:
        """Return the strides of each dimension for extra operands with the axes of the first operand."""
        return self._split(extras, self.op.inputs()[0], self.op.views()[0], self.form.maps[0])

    def _split(self, extras: Sequence[Shape], value: SSAValue, view: Sizes, affine: AffineMap) -> list[Shape]:
        """Return the strides of each dimension for extra operands with the axes of an operand."""
        return [strides_over(affine, split_strides(sizes_of(value), strides, view)) for strides in extras]

    @property
    def reads_first_once(self) -> bool:
        """Whether one stage alone reads the first operand, each element once: by index, it may read some often."""
        is_read_once = list(self.op.read_operands()).count(0) == 1
        return is_read_once and len(list(self.block.args[0].uses)) == 1 and not self.form.reads

    def kept_strides(self, value: SSAValue) -> Shape:
        """Return the strides of each dimension for a kept row, which is dense for the largest sizes."""
        space, dimensions = self.space, dimensions_of(value.type)
        dense = contiguous_strides(tuple(largest(space[number]) for number in dimensions))
        steps = dict(zip(dimensions, dense, strict=True))
        return tuple(steps.get(number, 0) for number in range(len(space)))

    def kept_size(self, value: SSAValue) -> int:
        """Return the largest number of elements of a kept row."""
        space = self.space
        return math.prod(largest(space[number]) for number in dimensions_of(value.type))

    @property
    def element(self) -> Attribute:
        """The type that determines the number of lanes: the widest of the first operand and of folded values."""
        folded = [element for stage in self.stages for part in initial_of(stage) for _, element in part]
        return max((computed(element_of(self.op.inputs()[0])), *folded), key=lambda element: type_info(element).bits)

    def alone(self, target: Target) -> Alone:
        """Return when a line is computed alone: for costly functions, lines side by side hide more latency."""
        chains = sum(count_chains(stage.body.block) for stage in stages_of(self.block))
        return softmax_alone(target) if chains else normalization_alone(target)

    def lines(self, space: Extents | Sizes, strides: Sequence[Shape]) -> Lines:
        """Return the lines of the whole index space."""
        return lines_over(space, range(len(space)), self.rows, strides)

    def count(self, lines: Lines, target: Target) -> int:
        """Return the number of lines side by side: the chosen one, else the best guess."""
        chosen = tiles_of(self.op).get(LINES)
        return self.best_count(lines, target) if chosen is None else chosen

    def best_count(self, lines: Lines, target: Target) -> int:
        """Return the best guess of lines side by side: one for a reduction, so that its sums have a fixed order."""
        return 1 if self.is_reduction or self.runs else side_by_side(lines, self.element, target, self.alone(target))

    @property
    def runs(self) -> bool:
        """Whether a stage has running totals, whose elements are computed in order."""
        return any(word in RUNNING_FOLDS for stage in self.stages for word in stage.words)

    def width(self, target: Target, count: int, is_across: bool) -> int:
        """Return the lanes of a line, or of lines across lanes, if `count` lines are computed side by side."""
        costs = kernel_costs(target)
        if self.runs:
            carrier = f64 if is_float(self.element) and target.doubles else self.element
            return lanes_for(target, carrier, (0,), max(1, costs.independent_vectors // 2)) if is_across else 1
        # This number of vectors hides the latency of an addition, and reads whole cache lines if rows are far apart.
        vectors = costs.independent_accumulators if self.is_reduction else costs.independent_vectors // count
        if any(map(has_positions, self.stages)):
            vectors = max(1, costs.independent_vectors // 2)  # A step is several instructions, and carries two vectors.
        return lanes_for(target, self.element, (0,), vectors)

    def planned_lines(self) -> Lines:
        """Return the lines as in machine code, with symbolic sizes instead of run-time sizes."""
        behind, before = (extra_strides_of(body) for body in (self.op.epilogue, self.op.prologue))
        extras = [*self.extra_strides(behind), *self.prologue_strides(before)]
        return self.lines(
            self.space, [*self.operand_strides(), *extras, *self.index_strides(), *self.element_strides()]
        )

    def element_strides(self) -> list[Shape]:
        """Return the strides of each dimension for the elements that are indices of axes."""
        return [strides_over(read.affine, self.axis_strides(read.operand)) for read in self.form.reads]

    def elements_a_line(self, target: Target) -> int:
        """Return the number of copies of kept rows: one per lane if lanes are lines, else one per line side by side."""
        if not self.kept or not self.runs_along_lines:
            return 1
        lines = self.planned_lines()
        count = self.count(lines, target)
        return self.width(target, count, True) if lines.across else count

    def candidates(self, target: Target) -> list[Tiles]:
        """Return the numbers of lines side by side, the best guess first; empty tiles if there is no choice."""
        if self.is_reduction or self.runs or not self.runs_along_lines:
            return [{}]
        lines = self.planned_lines()
        limit = lines.side_by_side(kernel_costs(target).independent_vectors)
        guess = self.best_count(lines, target)
        others = (1 << power for power in range(limit.bit_length()))
        return (
            [{LINES: count} for count in (guess, *(other for other in others if other != guess))] if limit > 1 else [{}]
        )


def can_run(form: GenericForm) -> bool:
    """Whether machine code can run a chain of stages: no computed, kept or stored elements are narrow."""
    rows = (value.type for stage in stages_of(form.block) for value in stage.results)
    stored = [form.element, *(element_at(type_) for type_ in rows if isinstance(type_, RowType))]
    is_able = all(map(can_emit, scalar_ops_of(form.block)))
    return is_able and (form.moves or not any(map(is_narrow, stored)))


def extra_strides_of(body: Body | None) -> list[Shape]:
    """Return the strides of the axes of a body for its extra operands."""
    if body is None:
        return []
    operands = zip((*body.targets, *body.sources), body.maps, strict=True)
    return [strides_over(affine, strides_of(value)) for value, affine in operands]


def is_count(stage: StageOp) -> bool:
    """Whether a stage counts indices: it adds up a constant."""
    return not stage.inputs and stage.words == ["add"] and isinstance(stage.yielded[0].owner, arith.ConstantOp)


def lines_over(
    space: Extents | Sizes, dimensions: Sequence[int], along: Sequence[int], strides: Sequence[Shape]
) -> Lines:
    """
    Return lines along the dimensions `along` of an index space, for each index of the others.

    `strides` are those of the operands.

    Dimensions with long strides are outer loops, and dimensions along lines are innermost, unless another dimension is
    contiguous in memory: then each lane has a line.
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
    """Return the initial carried values of each fold of a stage, and their element types."""
    if any(word in RUNNING_FOLDS for word in stage.words):
        return [[(0, held(stage.yielded[0].type))]]
    return [fold.initial(value.type) for fold, value in zip(folds_of(stage), stage.yielded, strict=False)]


def folds_of(stage: StageOp) -> list[Fold]:
    """Return how machine code folds the values that a stage yields."""
    return [fold_for(word, value.type) for word, value in zip(stage.words, stage.yielded, strict=False)]


def has_positions(stage: StageOp) -> bool:
    """Whether a stage folds elements into an index."""
    return any(word in POSITION_FOLDS for word in stage.words)
