"""
Kernels of recurrences: for each step a product of the state with the weights, then scalar code on the gates.

The weights are packed in blocks of hidden units, all gates of a unit next to each other: the product of a block is that
of the matrix kernels, its sums stay in the first cache, and the scalar code follows at once. A step reads one state and
writes another, so that its blocks are independent of each other. Every other step goes through the weights backwards:
what it reads first is what the step before read last, and still in the cache.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.access import computed, lanes_for, load, read_index, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear, vector_loop
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.dot_products import multiply_adds
from glow_mlir.codegen.kernels.gemm import emit_row_tiles
from glow_mlir.codegen.kernels.micro_gemm import MicroKernel
from glow_mlir.codegen.kernels.packed_operand import PACK, packed_operand, packing_cuts, packing_scratch
from glow_mlir.codegen.kernels.row_product import RowProduct
from glow_mlir.codegen.kernels.tiles import Tile, tile_for
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.math.half import is_half, rounded
from glow_mlir.codegen.scalar_body import can_emit, emit_scalar_body
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import gate_blocks
from glow_mlir.dialects.glow_high.recurrence import GruSteps, LstmSteps, Recurrence, RnnSteps
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, largest_shape, sizes_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size

SUMS, STATES, UPDATE, RESET_STATE = range(4)
"""Positions of the scratch operands; only a GRU whose reset gate comes before the product has the last two."""


@dataclass(frozen=True)
class ScalarFunction:
    """Scalar code of an operator as a block, ready to be emitted on vectors."""

    block: Block
    outputs: list[SSAValue]

    @staticmethod
    def of(code: Callable[..., Scalar | tuple[Scalar, ...]], count: int, element: Attribute) -> ScalarFunction:
        """The code on `count` arguments of one element type."""
        block = Block(arg_types=[element] * count)

        def insert(op: Operation) -> Operation:
            block.add_op(op)
            return op

        builder = ScalarBuilder(insert)
        results = code(builder, *(builder.wrap(argument, element) for argument in block.args))
        return ScalarFunction(block, [r.value for r in (results if isinstance(results, tuple) else (results,))])

    def __call__(self, b: Builder, *arguments: Value) -> list[Value]:
        """The results on vectors."""
        return emit_scalar_body(b, self.block, arguments, self.outputs, arguments[0].lanes)


@dataclass(frozen=True)
class Row:
    """Neighbouring elements of an operand along its last axis, from an offset on."""

    operand: Operand
    start: Index

    @staticmethod
    def of(operand: Operand, *place: Index) -> Row:
        """The last axis of an operand at a place of the others."""
        return Row(operand, linear(place, operand.strides[:-1]))

    def _at(self, column: Index) -> Index:
        return moved_by(self.start, column, self.operand.strides[-1])

    def load(self, b: Builder, column: Index, lanes: int) -> Value:
        """`lanes` elements from a column on."""
        return load(b, self.operand, self._at(column), 1, lanes)

    def store(self, b: Builder, column: Index, value: Value) -> None:
        """Write elements from a column on."""
        store(b, self.operand, self._at(column), value)


@dataclass(frozen=True)
class Plan:
    """How the weights are packed: panels of `together` gates of `units` hidden units, multiplied in tiles."""

    gates: int
    together: int
    hidden: int
    units: int
    tile: Tile
    element: Attribute

    @staticmethod
    def of(target: Target, gates: int, at_once: int, batch: int, hidden: int, element: Attribute) -> Plan:
        """
        The plan for a machine, where the product of `at_once` gates is that with the same row.

        A panel for one row of a batch has about as many vectors as it takes sums to hide the latency of a product, or
        to read the row seldom; several rows are multiplied in tiles of about the size of those of a matrix product.
        """
        usual, costs = tile_for(target, element), kernel_costs(target)
        block_cost = costs.recurrent_block_percent / 100
        widest = max(usual.sums, costs.row_sums, at_once) if batch == 1 else usual.vectors
        together = max(count for count in range(1, at_once + 1) if at_once % count == 0 and count <= widest)

        def cost(vectors: int) -> float:
            blocks = -(-hidden // (vectors * usual.lanes))
            return blocks * (vectors * together + block_cost)

        vectors = min(range(1, widest // together + 1), key=cost)
        rows = max(1, usual.rows * usual.vectors // (vectors * together))
        tile = dataclasses.replace(usual, rows=rows, vectors=vectors * together)
        return Plan(gates, together, hidden, vectors * usual.lanes, tile, element)

    @property
    def panels(self) -> int:
        """Panels of a block."""
        return self.gates // self.together

    @property
    def packed_shape(self) -> tuple[int, int, int, int]:
        """Blocks, panels, rows of the weights, and columns of a panel."""
        return -(-self.hidden // self.units), self.panels, self.hidden, self.tile.panel


@dataclass(frozen=True)
class Units:
    """A block of hidden units, how many of them there are, and whether its weights are read backwards."""

    block: Index
    count: int
    backwards: Value


UnitCode = Callable[[Index, Index, Index, int], None]
"""Row of the batch, hidden unit, unit of the block, lanes: the scalar code for so many units from there on."""


@dataclass(frozen=True)
class RecurrentStep:
    """What the code of one step refers to: the states before it are read, others written."""

    call: KernelCall
    plan: Plan
    functions: list[ScalarFunction]
    batch: Index
    time: Value
    number: Value
    packed: Value

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    @property
    def lanes(self) -> int:
        """Lanes of the scalar code, two vectors to hide latencies; 1 where the last axis of an operand has gaps."""
        operands = [operand for group in self.call.operands.values() for operand in group if operand.sizes]
        return lanes_for(self.call.target, self.plan.element, [operand.strides[-1] for operand in operands], 2)

    def input(self, n: Index) -> Row:
        """What the input adds to the gates of a row of the batch."""
        return Row.of(self.call.one("input"), self.time, n)

    def scratch(self, n: Index, position: int) -> Row:
        """A row of a scratch operand."""
        return Row.of(self.call.many("scratch")[position], n)

    def state(self, n: Index) -> Row:
        """The state before the step, of a row of the batch."""
        return Row.of(self.call.many("scratch")[STATES], self.number & 1, n)

    def compute(
        self, code: UnitCode, panels: Sequence[int] | None = None, reset: bool = False, axis: str = "units"
    ) -> None:
        """
        For each block, set the sums to its panels, or some of them, times the state, or the state times its reset gate;
        then run the code on its units. The last block, which may have fewer units, is always done last. The share of
        the call along the axis is one of the blocks, the same in each step.
        """
        panels = range(self.plan.panels) if panels is None else panels
        whole, rest = divmod(self.plan.hidden, self.plan.units)
        backwards = (self.number & 1).eq(int(not reset))

        def block(units: Units) -> None:
            for place, panel in enumerate(panels):
                self._multiply(units, panel, place, reset)
            with self.b.loop(0, self.batch) as n:
                first = units.block * self.plan.units
                vector_loop(self.b, units.count, self.lanes, lambda j, lanes: code(n, j + first, j, lanes))

        share, blocks = self.call.share(axis), self.plan.packed_shape[0]
        if whole:
            begin, end = share.within(blocks, 0, whole)
            with self.b.loop(begin, end) as j:
                block(Units(self.b.select(backwards, begin + end - 1 - j, j), self.plan.units, backwards))
        if rest:
            with self.b.loop(*share.within(blocks, whole, 1)):
                block(Units(whole, rest, backwards))

    def _multiply(self, units: Units, panel: int, place: int, reset: bool) -> None:
        """Set the sums at a place to the product with one panel of a block."""
        _, panels, depth, width = self.plan.packed_shape
        operands, element = self.call.many("scratch"), self.plan.element
        source = operands[RESET_STATE].pointer if reset else self._before()
        weights = self.packed.at(units.block * (panels * depth * width) + panel * depth * width, element)
        output = operands[SUMS].pointer.at(place * width, element)
        if isinstance(self.batch, int) and self.batch == 1:
            self._row(output, source, weights, units.backwards)
        else:
            self._rows(output, source, weights)

    def _row(self, output: Value, source: Value, weights: Value, backwards: Value) -> None:
        b, element, depth, panel = self.b, self.plan.element, self.plan.hidden, self.plan.tile.panel
        together = kernel_costs(b.target).unrolled_cells
        if together > 1:
            product = RowProduct(element, self.plan.tile, together)
            product.call(b, output=output, input=source, weights=weights, depth=depth)
            return
        last = b.select(backwards, depth - 1, b.index(0))
        step = b.select(backwards, -1, b.index(1))
        RowProduct(element, self.plan.tile).call(
            b,
            output=output,
            input=source.at(last, element),
            weights=weights.at(last * panel, element),
            depth=depth,
            input_step=step,
            weights_step=step * panel,
        )

    def _rows(self, output: Value, source: Value, weights: Value) -> None:
        plan, pitch = self.plan, self.call.many("scratch")[SUMS].strides[0]

        def tile(row: Index, rows: int) -> None:
            MicroKernel(multiply_adds(plan.element), plan.tile, rows, plan.tile.vectors).call(
                self.b,
                output=output.at(row * pitch, plan.element),
                input=source.at(row * plan.hidden, plan.element),
                weights=weights,
                depth=plan.hidden,
                input_step=plan.hidden,
                output_step=pitch,
            )

        emit_row_tiles(self.b, 0, self.batch, plan.tile.rows, tile)

    def _before(self) -> Value:
        states = self.call.many("scratch")[STATES]
        return states.pointer.at((self.number & 1) * states.strides[0], self.plan.element)

    def total(self, n: Index, gate: int, j: Index, lanes: int) -> Value:
        """The product of one of the gates, for units of the block from `j` on."""
        return self.scratch(n, SUMS).load(self.b, j + gate * self.plan.units, lanes)

    def gate_sum(self, n: Index, gate: int, unit: Index, j: Index, lanes: int) -> Value:
        """That product plus what the input adds to the gate."""
        return self.total(n, gate, j, lanes) + self.input(n).load(self.b, unit + gate * self.plan.hidden, lanes)

    def keep(self, name: str, n: Index, unit: Index, *values: Value) -> None:
        """
        Store what the gradient needs of some units, gate after gate, where that is wanted.

        It may take the place of what the input adds to the gates, which has been read then.
        """
        kept = self.call.maybe(name)
        if kept is None:
            return
        row = Row.of(kept, self.time, n)
        for gate, value in enumerate(values):
            row.store(self.b, unit + gate * self.plan.hidden, self.masked(n, value))

    def masked(self, n: Index, value: Value) -> Value:
        """A value where the sequence has the step, else 0."""
        lengths = self.call.maybe("sequence_lens")
        if lengths is None:
            return value
        active = self.time < self.b.index(read_index(self.b, lengths, linear([n], lengths.strides)))
        return self.b.select(active, value, 0.0)

    def finish(self, n: Index, unit: Index, h: Value, cell: Value | None = None) -> None:
        """Store a new state, which is the result of the step, and cell, unless the sequence has ended."""
        b, lengths, output = self.b, self.call.maybe("sequence_lens"), h
        if is_half(element := self.call.one("last_h").element):
            h = rounded(b, h, element)
        last_c = None if cell is None else Row.of(self.call.one("last_c"), n)
        if lengths is not None:
            active = self.time < b.index(read_index(b, lengths, linear([n], lengths.strides)))
            output = b.select(active, output, 0.0)
            h = b.select(active, h, self.state(n).load(b, unit, h.lanes))
            if last_c is not None and cell is not None:
                cell = b.select(active, cell, last_c.load(b, unit, h.lanes))
        if last_c is not None and cell is not None:
            last_c.store(b, unit, cell)
        Row.of(self.call.many("scratch")[STATES], 1 - (self.number & 1), n).store(b, unit, h)
        Row.of(self.call.one("states"), self.time, n).store(b, unit, output)


RecurrenceT = TypeVar("RecurrenceT", bound=Recurrence, default=Any)
"""The recurrence whose steps are computed."""


class RecurrenceKernel(Kernel[RecurrenceT]):
    """
    The loop over steps; what a step does differs.

    For several threads, the blocks of hidden units are cut in each step: the steps are the rounds.
    """

    AXES = (PACK, "begin", "units", "gates", "candidate", "end")
    RUN_TIME_SIZES = True

    def accepts(self, op: RecurrenceT) -> bool:
        return all(can_emit(inner) for function in self.functions(op) for inner in function.block.ops)

    @abstractmethod
    def functions(self, op: RecurrenceT) -> list[ScalarFunction]:
        """The scalar code of a step."""

    @abstractmethod
    def step(self, step: RecurrentStep) -> None:
        """Emit one step."""

    def at_once(self, op: RecurrenceT) -> int:
        """How many gates multiply the same state."""
        return op.GATES

    def plan(self, op: RecurrenceT, target: Target) -> Plan:
        """How the weights are packed."""
        batch, hidden = largest_shape(op.outputs()[1])
        return Plan.of(target, op.GATES, self.at_once(op), batch, hidden, _element(op))

    def scratch_shapes(self, op: RecurrenceT, plan: Plan, batch: int) -> list[tuple[int, ...]]:
        """What the steps need: the sums of a block, and the states before and after the step."""
        return [(batch, plan.panels * plan.tile.panel), (2, batch, plan.hidden)]

    def packed(self, op: RecurrenceT, target: Target) -> Mapping[str, PackedForm]:
        plan = self.plan(op, target)
        plain = plan.hidden, plan.gates * plan.hidden
        return {"weights": PackedForm(gate_blocks(plain, plan.together, plan.units), plan.element)}

    def scratch(self, op: RecurrenceT, target: Target) -> Sequence[Buffer]:
        plan = self.plan(op, target)
        shapes = self.scratch_shapes(op, plan, largest_shape(op.inputs()[0])[1])
        return [*((shape, plan.element) for shape in shapes), *packing_scratch(op, self.packed(op, target))]

    def cuts(self, op: RecurrenceT, target: Target) -> Mapping[str, int]:
        blocks = self.plan(op, target).packed_shape[0]
        pack = packing_cuts(op, self.packed(op, target), target)
        return {**pack, "begin": 1, **dict.fromkeys(self.step_axes(op), blocks), "end": 1}

    def rounds(self, op: RecurrenceT, axis: str, target: Target) -> Size:
        return 1 if axis in (PACK, "begin", "end") else sizes_of(op.inputs()[0])[0]

    def private(self, op: RecurrenceT) -> Sequence[int]:
        return (SUMS,)

    def step_axes(self, op: RecurrenceT) -> Sequence[str]:
        """The axes along which a step is cut, one after the other."""
        return ("units",)

    def emit(self, call: KernelCall[RecurrenceT]) -> None:
        op, b = call.op, call.b
        steps, batch, _ = call.one("input").extents
        plan, functions = self.plan(op, call.target), self.functions(op)
        form = self.packed(call.op, call.target)["weights"]
        packed = packed_operand(call, "weights", form, call.many("scratch")[-1])
        states = call.many("scratch")[STATES]

        def one(number: Value) -> None:
            time = b.index(steps - 1) - number if flag(op.reverse) else number
            self.step(RecurrentStep(call, plan, functions, batch, time, number, packed))

        if call.runs("begin"):
            _copy_rows(call, plan, call.one("initial_h"), states)
            if call.maybe("initial_c") is not None:
                _copy_rows(call, plan, call.one("initial_c"), call.one("last_c"))
        if call.round is not None:
            one(call.round)
        elif call.runs(*self.step_axes(op)):
            with b.loop(0, steps) as number:
                one(number)
        if call.runs("end"):
            last = dataclasses.replace(states, pointer=states.pointer.at(steps % 2 * states.strides[0], plan.element))
            _copy_rows(call, plan, last, call.one("last_h"))


def _element(op: Recurrence) -> Attribute:
    """The type that a recurrence is computed in."""
    return computed(element_of(op.inputs()[0]))


def _copy_rows(call: KernelCall, plan: Plan, source: Operand, target: Operand) -> None:
    """Copy a state of [batch, hidden]; of several in an operand, the first."""
    batch = call.one("last_h").extents[0]
    lanes = lanes_for(call.target, plan.element, [source.strides[-1], target.strides[-1]])

    def copy(n: Value, j: Index, lanes: int) -> None:
        value = load(call.b, source, linear([n, j], source.strides[-2:]), 1, lanes)
        store(call.b, target, linear([n, j], target.strides[-2:]), value)

    with call.b.loop(0, batch) as n:
        vector_loop(call.b, plan.hidden, lanes, lambda j, lanes: copy(n, j, lanes))


@kernel("lstm-recurrence")
class LstmRecurrenceKernel(RecurrenceKernel[LstmSteps]):
    """One product, then the cell."""

    name = "lstm-recurrence"

    def functions(self, op: LstmSteps) -> list[ScalarFunction]:
        count = 5 if op.peepholes is None else 8

        def cell(b: ScalarBuilder, *arguments: Scalar) -> tuple[Scalar, Scalar]:
            return op.cell(b, arguments[:4], arguments[4], arguments[5:])

        return [ScalarFunction.of(cell, count, _element(op))]

    def step(self, step: RecurrentStep) -> None:
        b, hidden, peepholes = step.b, step.plan.hidden, step.call.maybe("peepholes")

        def cell(n: Index, unit: Index, j: Index, lanes: int) -> None:
            gates = [step.gate_sum(n, gate, unit, j, lanes) for gate in range(4)]
            before = Row.of(step.call.one("last_c"), n).load(b, unit, lanes)
            step.keep("sums", n, unit, *gates)
            step.keep("cells", n, unit, before)
            extra = [] if peepholes is None else [Row.of(peepholes).load(b, unit + p * hidden, lanes) for p in range(3)]
            h, c = step.functions[0](b, *gates, before, *extra)
            step.finish(n, unit, h, c)

        step.compute(cell)


@kernel("gru-recurrence")
class GruRecurrenceKernel(RecurrenceKernel[GruSteps]):
    """The products of update and reset gate, then that of the candidate, then the blend."""

    name = "gru-recurrence"

    def at_once(self, op: GruSteps) -> int:
        # Without bias, the product of the candidate is one with the state times the whole reset gate.
        return 1 if op.bias is None else 3

    def step_axes(self, op: GruSteps) -> Sequence[str]:
        return ("gates", "candidate") if self.at_once(op) == 1 else ("units",)

    def scratch_shapes(self, op: GruSteps, plan: Plan, batch: int) -> list[tuple[int, ...]]:
        extra = [(batch, plan.hidden)] * 2 if self.at_once(op) == 1 else []
        return [*super().scratch_shapes(op, plan, batch), *extra]

    def functions(self, op: GruSteps) -> list[ScalarFunction]:
        return [ScalarFunction.of(op.gate, 1, _element(op)), ScalarFunction.of(op.blend, 3, _element(op))]

    def step(self, step: RecurrentStep) -> None:
        bias = step.call.maybe("bias")
        if bias is not None:
            self._reset_product(step, Row.of(bias))
            return
        if step.call.runs("gates"):
            self._gates(step)
        if step.call.runs("candidate"):
            self._candidate(step)

    def _reset_product(self, step: RecurrentStep, bias: Row) -> None:
        """All gates at once: the reset gate multiplies the product of the candidate."""
        b, hidden, (_, blend) = step.b, step.plan.hidden, step.functions

        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            sums, (update, reset) = _gates(step, n, unit, j, lanes)
            product = step.total(n, 2, j, lanes) + bias.load(b, unit, lanes)
            total = b.fma(reset, product, step.input(n).load(b, unit + 2 * hidden, lanes))
            step.keep("sums", n, unit, *sums, product)
            (h,) = blend(b, update, total, step.state(n).load(b, unit, lanes))
            step.finish(n, unit, h)

        step.compute(unit_code)

    def _gates(self, step: RecurrentStep) -> None:
        """The update gate, and the state times the reset gate, for all units."""
        b = step.b

        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            sums, (update, reset) = _gates(step, n, unit, j, lanes)
            step.keep("sums", n, unit, *sums)
            step.scratch(n, UPDATE).store(b, unit, update)
            step.scratch(n, RESET_STATE).store(b, unit, reset * step.state(n).load(b, unit, lanes))

        step.compute(unit_code, panels=(0, 1), axis="gates")

    def _candidate(self, step: RecurrentStep) -> None:
        """The new state, from the product with the state times the reset gate."""
        b, hidden, (_, blend) = step.b, step.plan.hidden, step.functions

        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            total = step.total(n, 0, j, lanes) + step.input(n).load(b, unit + 2 * hidden, lanes)
            step.keep("sums", n, unit + 2 * hidden, total)
            update = step.scratch(n, UPDATE).load(b, unit, lanes)
            (h,) = blend(b, update, total, step.state(n).load(b, unit, lanes))
            step.finish(n, unit, h)

        step.compute(unit_code, panels=(2,), reset=True, axis="candidate")


def _gates(step: RecurrentStep, n: Index, unit: Index, j: Index, lanes: int) -> tuple[list[Value], list[Value]]:
    """The sums of update and reset gate of some units, and the gates."""
    sums: list[Value] = []
    gates: list[Value] = []
    for place in range(2):
        sums.append(step.gate_sum(n, place, unit, j, lanes))
        gates += step.functions[0](step.b, sums[-1])
    return sums, gates


@kernel("rnn-recurrence")
class RnnRecurrenceKernel(RecurrenceKernel[RnnSteps]):
    """One product, then its function."""

    name = "rnn-recurrence"

    def functions(self, op: RnnSteps) -> list[ScalarFunction]:
        return [ScalarFunction.of(op.cell, 1, _element(op))]

    def step(self, step: RecurrentStep) -> None:
        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            total = step.gate_sum(n, 0, unit, j, lanes)
            step.keep("sums", n, unit, total)
            (h,) = step.functions[0](step.b, total)
            step.finish(n, unit, h)

        step.compute(unit_code)
