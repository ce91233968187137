"""
Kernels of recurrences: for each step a product of the state with the weights, then scalar code on the gates.

The state lives in the result `last_h`, and that of a cell in `last_c`. A scratch buffer holds the sums of the gates of
one step, another, where the network needs it, the state times its reset gate.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.access import computed, lanes_for, load, read_index, store
from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.copies import Box, copy_box
from glow_mlir.codegen.kernel import Kernel, KernelCall, Operand, add_scratch, kind_of
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.nests import Index, chunks, linear, vector_loop
from glow_mlir.codegen.scalar_body import can_emit, emit_scalar_body
from glow_mlir.codegen.target import Target
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.glow_high.recurrence import GruRecurrenceOp, LstmRecurrenceOp, Recurrence, RnnRecurrenceOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.registry import kernel
from glow_mlir.storage import Storage

ROWS = 4
"""Rows of a batch that share one pass over the weights."""
STREAMS = 4
"""Rows of the weights that are read side by side for a batch of one; eight share too few sets of the cache."""


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
class Frame:
    """What the code of one step refers to."""

    call: KernelCall
    functions: list[ScalarFunction]
    batch: int
    hidden: int
    time: Value

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.call.b

    def lanes(self, vectors: int) -> int:
        """Lanes for so many vectors at once; 1 where the last axis of an operand has gaps."""
        operands = [operand for group in self.call.operands.values() for operand in group if operand.shape]
        steps = [operand.strides[-1] for operand in operands]
        return lanes_for(self.call.target, computed(self.call.one("input").element), steps, vectors)

    def input(self, n: Index) -> Row:
        """What the input adds to the gates of a row of the batch."""
        return Row.of(self.call.one("input"), self.time, n)

    def scratch(self, n: Index, position: int = 0) -> Row:
        """A row of a scratch operand."""
        return Row.of(self.call.many("scratch")[position], n)

    def state(self, n: Index, name: str = "last_h") -> Row:
        """A state of a row of the batch."""
        return Row.of(self.call.one(name), n)

    def multiply(
        self, first: int, count: int, addend: Callable[[Index], Row], state: Callable[[Index], Row], skipped: int = 0
    ) -> None:
        """
        Set `count` columns of the sums from column `first` on: the addend plus the state times the weights.

        The addend has these columns from `first` - `skipped` on. The columns of the weights stay in the cache for all
        rows of the batch.
        """
        if self.batch == 1:
            self._stream(first, count, addend(0), state(0), skipped)
            return
        # Half of the registers hold sums; eight of them are enough to hide the latency of a product.
        _, _, most = chunks(self.batch, ROWS)[0]
        vectors = max(1, min(8, self.call.target.vector_registers // 2 // most))

        def columns(column: Index, lanes: int) -> None:
            place = column + first
            for start, stop, rows in chunks(self.batch, ROWS):
                with self.b.loop(start, stop, rows) as n:
                    parts = [(addend(n + r), state(n + r)) for r in range(rows)]
                    totals = [part.load(self.b, place - skipped, lanes) for part, _ in parts]
                    totals = self._accumulate(place, lanes, [row for _, row in parts], totals)
                    for r, total in enumerate(totals):
                        self.scratch(n + r).store(self.b, place, total)

        vector_loop(self.b, count, self.lanes(vectors), columns)

    def _stream(self, first: int, count: int, addend: Row, state: Row, skipped: int) -> None:
        """
        Set columns of the sums of a single row; the sums stay in the cache, and the weights are read in their order.

        Their rows are often a multiple of 4 KB apart: blocks of columns, read downwards, would be far slower.
        """
        b, weights, sums = self.b, self.call.one("weights"), self.scratch(0)

        def start(column: Index, lanes: int) -> None:
            sums.store(b, column + first, addend.load(b, column + (first - skipped), lanes))

        vector_loop(b, count, self.lanes(1), start)
        for begin, end, rows in chunks(self.hidden, STREAMS):
            with b.loop(begin, end, rows) as k:
                lines = [(Row.of(weights, k + r), state.load(b, k + r, 1)) for r in range(rows)]
                self._add_lines(first, count, sums, lines)

    def _add_lines(self, first: int, count: int, sums: Row, lines: Sequence[tuple[Row, Value]]) -> None:
        """Add rows of the weights, each times its factor, to columns of the sums."""
        b = self.b

        def add(column: Index, lanes: int) -> None:
            place = column + first
            total = sums.load(b, place, lanes)
            for line, factor in lines:
                total = b.fma(b.splat(factor, lanes), line.load(b, place, lanes), total)
            sums.store(b, place, total)

        vector_loop(b, count, self.lanes(1), add)

    def _accumulate(self, column: Index, lanes: int, states: Sequence[Row], totals: list[Value]) -> list[Value]:
        b, weights = self.b, self.call.one("weights")
        with b.loop(0, self.hidden, 1, carried=totals) as loop:
            w = Row.of(weights, loop.index).load(b, column, lanes)
            factors = [row.load(b, loop.index, 1) for row in states]
            loop.set(*(b.fma(b.splat(h, lanes), w, total) for h, total in zip(factors, loop.values, strict=True)))
        return loop.results

    def each(self, body: Callable[[Value, Index, int], None]) -> None:
        """Loops over the batch and vectors of hidden units."""
        with self.b.loop(0, self.batch, 1) as n:
            vector_loop(self.b, self.hidden, self.lanes(1), lambda j, lanes: body(n, j, lanes))

    def finish(self, n: Index, j: Index, new: Sequence[tuple[str, Value]]) -> None:
        """Store new states, the first of which is the result of the step, unless the sequence has ended."""
        b = self.b
        lengths = self.call.maybe("sequence_lens")
        output = new[0][1]
        if lengths is not None:
            active = self.time < read_index(b, lengths, linear([n], lengths.strides))
            output = b.select(active, output, 0.0)
            new = [(name, b.select(active, value, self.state(n, name).load(b, j, value.lanes))) for name, value in new]
        for name, value in new:
            self.state(n, name).store(b, j, value)
        Row.of(self.call.one("states"), self.time, n).store(b, j, output)


class RecurrenceKernel(Kernel):
    """The loop over steps; what a step does differs."""

    OPERATOR: ClassVar[type[Recurrence]]
    STATES: ClassVar[tuple[tuple[str, str], ...]] = (("initial_h", "last_h"),)
    """Initial states, and the results in which the states live."""

    def accepts(self, op: Operation) -> bool:
        if kind_of(op) is not self.OPERATOR:
            return False
        found = self.functions(cast(Recurrence, op))
        return all(can_emit(inner) for function in found for inner in function.block.ops)

    @abstractmethod
    def functions(self, op: Recurrence) -> list[ScalarFunction]:
        """The scalar code of a step."""

    @abstractmethod
    def step(self, frame: Frame) -> None:
        """Emit one step: from the states before to the states after it."""

    def prepare(self, op: Instruction, storage: Storage, target: Target) -> None:
        assert isinstance(op, DerivedInstruction)
        source = op.inputs()[0]
        add_scratch(op, shape_of(source)[1:], computed(element_of(source)))

    def emit(self, call: KernelCall) -> None:
        for initial, last in self.STATES:
            copy_box(call.b, call.one(last).shape, Box.all_of(call.one(last)), Box.all_of(call.one(initial)))
        op = cast(Recurrence, call.op)
        steps, batch, _ = call.one("input").shape
        functions, hidden = self.functions(op), call.one("weights").shape[0]
        with call.b.loop(0, steps, 1) as i:
            time = call.b.index(steps - 1) - i if flag(op.reverse) else i
            self.step(Frame(call, functions, batch, hidden, time))


def _element(op: Recurrence) -> Attribute:
    """The type that a recurrence is computed in."""
    return computed(element_of(op.inputs()[0]))


@kernel("lstm-recurrence")
class LstmRecurrenceKernel(RecurrenceKernel):
    """One product, then the cell."""

    name = "lstm-recurrence"
    OPERATOR = LstmRecurrenceOp
    STATES = (("initial_h", "last_h"), ("initial_c", "last_c"))

    def functions(self, op: Recurrence) -> list[ScalarFunction]:
        lstm = cast(LstmRecurrenceOp, op)
        count = 5 if lstm.peepholes is None else 8

        def cell(b: ScalarBuilder, *arguments: Scalar) -> tuple[Scalar, Scalar]:
            return lstm.cell(b, arguments[:4], arguments[4], arguments[5:])

        return [ScalarFunction.of(cell, count, _element(op))]

    def step(self, frame: Frame) -> None:
        b, hidden = frame.b, frame.hidden
        peepholes = frame.call.maybe("peepholes")
        frame.multiply(0, 4 * hidden, frame.input, frame.state)

        def cell(n: Value, j: Index, lanes: int) -> None:
            gates = [frame.scratch(n).load(b, j + gate * hidden, lanes) for gate in range(4)]
            before = frame.state(n, "last_c").load(b, j, lanes)
            extra = [] if peepholes is None else [Row.of(peepholes).load(b, j + p * hidden, lanes) for p in range(3)]
            h, c = frame.functions[0](b, *gates, before, *extra)
            frame.finish(n, j, [("last_h", h), ("last_c", c)])

        frame.each(cell)


@kernel("gru-recurrence")
class GruRecurrenceKernel(RecurrenceKernel):
    """The products of update and reset gate, then that of the candidate, then the blend."""

    name = "gru-recurrence"
    OPERATOR = GruRecurrenceOp

    def prepare(self, op: Instruction, storage: Storage, target: Target) -> None:
        RecurrenceKernel.prepare(self, op, storage, target)
        if cast(GruRecurrenceOp, op).bias is None:
            assert isinstance(op, DerivedInstruction)
            last = op.outputs()[1]
            add_scratch(op, shape_of(last), computed(element_of(last)))

    def functions(self, op: Recurrence) -> list[ScalarFunction]:
        gru = cast(GruRecurrenceOp, op)
        return [ScalarFunction.of(gru.gate, 1, _element(op)), ScalarFunction.of(gru.blend, 3, _element(op))]

    def step(self, frame: Frame) -> None:
        hidden, bias = frame.hidden, frame.call.maybe("bias")
        frame.multiply(0, 2 * hidden, frame.input, frame.state)
        if bias is None:
            self._reset_state(frame)
            frame.multiply(2 * hidden, hidden, frame.input, lambda n: frame.scratch(n, 1))
        else:
            frame.multiply(2 * hidden, hidden, lambda n: Row.of(bias), frame.state, skipped=2 * hidden)
        self._blend(frame, resets_product=bias is not None)

    def _reset_state(self, frame: Frame) -> None:
        b, (gate, _) = frame.b, frame.functions

        def reset(n: Value, j: Index, lanes: int) -> None:
            (factor,) = gate(b, frame.scratch(n).load(b, j + frame.hidden, lanes))
            frame.scratch(n, 1).store(b, j, factor * frame.state(n).load(b, j, lanes))

        frame.each(reset)

    def _blend(self, frame: Frame, resets_product: bool) -> None:
        b, hidden, (gate, blend) = frame.b, frame.hidden, frame.functions

        def unit(n: Value, j: Index, lanes: int) -> None:
            (update,) = gate(b, frame.scratch(n).load(b, j, lanes))
            total = frame.scratch(n).load(b, j + 2 * hidden, lanes)
            if resets_product:
                (factor,) = gate(b, frame.scratch(n).load(b, j + hidden, lanes))
                total = b.fma(factor, total, frame.input(n).load(b, j + 2 * hidden, lanes))
            (h,) = blend(b, update, total, frame.state(n).load(b, j, lanes))
            frame.finish(n, j, [("last_h", h)])

        frame.each(unit)


@kernel("rnn-recurrence")
class RnnRecurrenceKernel(RecurrenceKernel):
    """One product, then its function."""

    name = "rnn-recurrence"
    OPERATOR = RnnRecurrenceOp

    def functions(self, op: Recurrence) -> list[ScalarFunction]:
        return [ScalarFunction.of(cast(RnnRecurrenceOp, op).cell, 1, _element(op))]

    def step(self, frame: Frame) -> None:
        b = frame.b
        frame.multiply(0, frame.hidden, frame.input, frame.state)

        def unit(n: Value, j: Index, lanes: int) -> None:
            (h,) = frame.functions[0](b, frame.scratch(n).load(b, j, lanes))
            frame.finish(n, j, [("last_h", h)])

        frame.each(unit)
