"""
One step of a recurrence: its product in panels of packed weights, its input and output rows, its scalar code.

Rows of scratch are sequences of the batch. If sequences have lengths, longer ones come first: a step computes the first
rows, whose sequences have this step, and stores 0 for the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property

from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.access import lanes_for, load, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear, vector_loop
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import emit_row_tiles
from glow_mlir.codegen.kernels.products.micro_gemm import MicroKernel
from glow_mlir.codegen.kernels.products.row_product import RowProduct
from glow_mlir.codegen.kernels.products.tiles import Tile, tile_for
from glow_mlir.codegen.kernels.recurrences.sequence_order import SequenceOrder
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.math.half import is_half, rounded
from glow_mlir.codegen.scalar_body import emit_scalar_body
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

ACCUMULATORS, STATES, UPDATE, RESET_STATE = range(4)
"""Positions of the scratch operands; only a GRU that applies the reset gate before the product has the last two."""


@dataclass(frozen=True)
class ScalarFunction:
    """Scalar code of an operator as a block, which can be emitted for vectors."""

    block: Block
    outputs: list[SSAValue]

    @staticmethod
    def of(code: Callable[..., Scalar | tuple[Scalar, ...]], count: int, element: Attribute) -> ScalarFunction:
        """Return the function of `count` arguments of one element type."""
        block = Block(arg_types=[element] * count)

        def insert(op: Operation) -> Operation:
            block.add_op(op)
            return op

        builder = ScalarBuilder(insert)
        results = code(builder, *(builder.wrap(argument, element) for argument in block.args))
        return ScalarFunction(block, [r.value for r in (results if isinstance(results, tuple) else (results,))])

    def __call__(self, b: Builder, *arguments: Value) -> list[Value]:
        """Emit the function for vectors and return its results."""
        return emit_scalar_body(b, self.block, arguments, self.outputs, arguments[0].lanes)


@dataclass(frozen=True)
class Row:
    """The elements of an operand along its last axis, from an offset on."""

    operand: Operand
    start: Index

    @staticmethod
    def of(operand: Operand, *indices: Index) -> Row:
        """Return the last axis of an operand at indices of the other axes."""
        return Row(operand, linear(indices, operand.strides[:-1]))

    def _at(self, column: Index) -> Index:
        return moved_by(self.start, column, self.operand.strides[-1])

    def load(self, b: Builder, column: Index, lanes: int) -> Value:
        """Load `lanes` elements from a column on."""
        return load(b, self.operand, self._at(column), 1, lanes)

    def store(self, b: Builder, column: Index, value: Value) -> None:
        """Store elements from a column on."""
        store(b, self.operand, self._at(column), value)


@dataclass(frozen=True)
class Plan:
    """How the weights are packed: in panels of `together` gates of `units` hidden units, multiplied in tiles."""

    gates: int
    together: int
    hidden: int
    units: int
    tile: Tile
    element: Attribute

    @staticmethod
    def of(target: Target, gates: int, at_once: int, batch: int, hidden: int, element: Attribute) -> Plan:
        """
        Return the plan for a target; `at_once` gates are products with the same row.

        For a batch of one row, a panel has about as many vectors as accumulators are needed to hide the latency of
        multiply-adds, or to read the row rarely. Several rows are multiplied in tiles of about the size of those of a
        matrix product.
        """
        usual, costs = tile_for(target, element), kernel_costs(target)
        block_cost = costs.recurrent_block_percent / 100
        widest = max(usual.accumulators, costs.row_sums, at_once) if batch == 1 else usual.vectors
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
        """The number of panels of a block."""
        return self.gates // self.together

    @property
    def packed_shape(self) -> tuple[int, int, int, int]:
        """Blocks, panels per block, rows of the weights, and columns of a panel."""
        return -(-self.hidden // self.units), self.panels, self.hidden, self.tile.panel


@dataclass(frozen=True)
class Units:
    """A block of hidden units, the number of its units, and whether its weights are read backwards."""

    block: Index
    count: int
    backwards: Value


UnitCode = Callable[[Index, Index, Index, int], None]
"""Emits the scalar code for `lanes` units: row of the batch, first hidden unit, its index in the block, lanes."""


@dataclass(frozen=True)
class RecurrentStep:
    """One step: it reads the states before it, and writes the states after it."""

    call: KernelCall
    plan: Plan
    functions: list[ScalarFunction]
    batch: Index
    time: Value
    number: Value
    packed: Value
    order: SequenceOrder | None = None

    @cached_property
    def rows(self) -> Index:
        """The number of rows of scratch that the step computes."""
        return self.batch if self.order is None else self.order.running(self.time)

    def sequence(self, row: Index) -> Index:
        """Return the index in the batch of the sequence of a row of scratch."""
        return row if self.order is None else self.order.sequence(row)

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    @property
    def lanes(self) -> int:
        """The lanes of the scalar code, two vectors to hide latencies; 1 if the last axis of an operand has gaps."""
        operands = [operand for group in self.call.operands.values() for operand in group if operand.sizes]
        return lanes_for(self.call.target, self.plan.element, [operand.strides[-1] for operand in operands], 2)

    def input(self, n: Index) -> Row:
        """Return the contribution of the input to the gates of a row."""
        return Row.of(self.call.one("input"), self.time, self.sequence(n))

    def cell(self, n: Index) -> Row:
        """Return the cell state of a row, before and after the step."""
        return Row.of(self.call.one("last_c"), self.sequence(n))

    def scratch(self, n: Index, position: int) -> Row:
        """Return a row of a scratch operand."""
        return Row.of(self.call.many("scratch")[position], n)

    def state(self, n: Index) -> Row:
        """Return the state of a row before the step."""
        return Row.of(self.call.many("scratch")[STATES], self.number & 1, n)

    def compute(
        self,
        code: UnitCode,
        panels: Sequence[int] | None = None,
        reset: bool = False,
        axis: str = "units",
        finishes: bool = True,
    ) -> None:
        """
        For each block, multiply its panels by the state, or, if `reset`, by the state times the reset gate; then run
        the code on its units.

        `panels` selects some of the panels. The last block, which may have fewer units, always comes last. Shares
        along `axis` divide the blocks, in the same way in each step. If the code `finishes` the step, zeros are stored
        for rows without it.
        """
        rows = self.rows
        panels = range(self.plan.panels) if panels is None else panels
        whole, rest = divmod(self.plan.hidden, self.plan.units)
        backwards = (self.number & 1).eq(int(not reset))

        def block(units: Units) -> None:
            for position, panel in enumerate(panels):
                self._multiply(units, panel, position, reset)
            first = units.block * self.plan.units
            with self.b.loop(0, rows) as n:
                vector_loop(self.b, units.count, self.lanes, lambda j, lanes: code(n, j + first, j, lanes))
            if self.order is not None and finishes:
                with self.b.loop(rows, self.batch) as n:
                    vector_loop(self.b, units.count, self.lanes, lambda j, lanes: self._clear(n, j + first, lanes))

        share, blocks = self.call.share(axis), self.plan.packed_shape[0]
        if whole:
            begin, end = share.within(blocks, 0, whole)
            with self.b.loop(begin, end) as j:
                block(Units(self.b.select(backwards, begin + end - 1 - j, j), self.plan.units, backwards))
        if rest:
            with self.b.loop(*share.within(blocks, whole, 1)):
                block(Units(whole, rest, backwards))

    def _multiply(self, units: Units, panel: int, position: int, reset: bool) -> None:
        """Set the accumulators at a position to the product with one panel of a block."""
        _, panels, depth, width = self.plan.packed_shape
        operands, element = self.call.many("scratch"), self.plan.element
        source = operands[RESET_STATE].pointer if reset else self._before()
        weights = self.packed.at(units.block * (panels * depth * width) + panel * depth * width, element)
        output = operands[ACCUMULATORS].pointer.at(position * width, element)
        if self.batch == 1 and not self.call.target.is_strict:
            with nullcontext() if self.order is None else self.b.when(self.b.index(self.rows) > 0):
                self._row(output, source, weights, units.backwards)
        else:
            self._rows(output, source, weights)

    def _row(self, output: Value, source: Value, weights: Value, backwards: Value) -> None:
        b, element, depth, panel = self.b, self.plan.element, self.plan.hidden, self.plan.tile.panel
        together = kernel_costs(b.target).unrolled_groups
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
        plan, pitch = self.plan, self.call.many("scratch")[ACCUMULATORS].strides[0]

        def tile(row: Index, rows: int) -> None:
            own = 0 if self.call.target.is_strict else None
            MicroKernel(multiply_adds(plan.element), plan.tile, rows, plan.tile.vectors, own_accumulators=own).call(
                self.b,
                output=output.at(row * pitch, plan.element),
                input=source.at(row * plan.hidden, plan.element),
                weights=weights,
                depth=plan.hidden,
                input_step=plan.hidden,
                output_step=pitch,
            )

        emit_row_tiles(self.b, 0, self.rows, plan.tile.rows, tile)

    def _before(self) -> Value:
        states = self.call.many("scratch")[STATES]
        return states.pointer.at((self.number & 1) * states.strides[0], self.plan.element)

    def total(self, n: Index, gate: int, j: Index, lanes: int) -> Value:
        """Load the product of a gate, for units of the block from `j` on."""
        return self.scratch(n, ACCUMULATORS).load(self.b, j + gate * self.plan.units, lanes)

    def gate_sum(self, n: Index, gate: int, unit: Index, j: Index, lanes: int) -> Value:
        """Return the product of a gate plus the contribution of the input."""
        return self.total(n, gate, j, lanes) + self.input(n).load(self.b, unit + gate * self.plan.hidden, lanes)

    def keep(self, name: str, n: Index, unit: Index, *values: Value) -> None:
        """
        Store values of units for the gradient, gate after gate, if the call has the result `name`.

        The result may overwrite the input's contribution to the gates, which has been read by then.
        """
        kept = self.call.maybe(name)
        if kept is None:
            return
        row = Row.of(kept, self.time, self.sequence(n))
        for gate, value in enumerate(values):
            row.store(self.b, unit + gate * self.plan.hidden, value)

    def finish(self, n: Index, unit: Index, h: Value, cell: Value | None = None) -> None:
        """Store the new state, which is the result of the step, and the new cell state."""
        b, output = self.b, h
        if is_half(element := self.call.one("last_h").element):
            h = rounded(b, h, element)
        if cell is not None:
            self.cell(n).store(b, unit, cell)
        Row.of(self.call.many("scratch")[STATES], 1 - (self.number & 1), n).store(b, unit, h)
        Row.of(self.call.one("states"), self.time, self.sequence(n)).store(b, unit, output)

    def _clear(self, n: Index, unit: Index, lanes: int) -> None:
        """Store zeros as the results of the step for `lanes` units of a row."""
        zero = self.b.splat(self.b.constant(0.0, self.plan.element), lanes)
        Row.of(self.call.one("states"), self.time, self.sequence(n)).store(self.b, unit, zero)
        self.keep("sums", n, unit, *[zero] * self.plan.gates)
        self.keep("cells", n, unit, zero)
