"""
Kernels of recurrences: for each step a product of the state with the weights, then scalar code on the gates.

The weights are packed in blocks of hidden units, with all gates of a unit adjacent. The product of a block is computed
as by the matrix kernels, its accumulators stay in the L1 cache, and the scalar code follows at once. A step reads one
state and writes another, so that its blocks are independent. Every other step goes through the weights backwards, since
the weights that the previous step read last are still in the cache.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typing_extensions import TypeVar
from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, vector_loop
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.packed_operand import PACK, packed_operand, packing_cuts, packing_scratch
from glow_mlir.codegen.kernels.recurrences.recurrent_step import (
    ACCUMULATORS,
    RESET_STATE,
    STATES,
    UPDATE,
    Plan,
    RecurrentStep,
    Row,
    ScalarFunction,
)
from glow_mlir.codegen.kernels.recurrences.sequence_order import SequenceOrder
from glow_mlir.codegen.scalar_body import can_emit
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand, operands_of
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.constants.layouts import gate_blocks
from glow_mlir.dialects.glow_high.recurrence import GruSteps, LstmSteps, Recurrence, RnnSteps
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, largest_shape, sizes_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.symbols import Size

RecurrenceT = TypeVar("RecurrenceT", bound=Recurrence, default=Any)
"""The operator whose steps a kernel computes."""


class RecurrenceKernel(Kernel[RecurrenceT]):
    """
    The loop over steps; subclasses define the step.

    With several threads, each step divides the blocks of hidden units among them: the steps are the phases.
    """

    AXES = (PACK, "begin", "units", "gates", "candidate", "end")
    RUN_TIME_SIZES = True

    def accepts(self, op: RecurrenceT) -> bool:
        return all(can_emit(inner) for function in self.functions(op) for inner in function.block.ops)

    @abstractmethod
    def functions(self, op: RecurrenceT) -> list[ScalarFunction]:
        """Return the scalar functions of a step."""

    @abstractmethod
    def step(self, step: RecurrentStep) -> None:
        """Emit one step."""

    def at_once(self, op: RecurrenceT) -> int:
        """Return the number of gates that are products with the same state."""
        return op.GATES

    def plan(self, op: RecurrenceT, target: Target) -> Plan:
        """Return how the weights are packed."""
        batch, hidden = largest_shape(op.outputs()[1])
        return Plan.of(target, op.GATES, self.at_once(op), batch, hidden, _element(op))

    def scratch_shapes(self, op: RecurrenceT, plan: Plan, batch: int) -> list[tuple[int, ...]]:
        """Return the shapes of scratch buffers: the accumulators of a block, and the states before and after a step."""
        return [(batch, plan.panels * plan.tile.panel), (2, batch, plan.hidden)]

    def packed(self, op: RecurrenceT, target: Target) -> Mapping[str, PackedForm]:
        plan = self.plan(op, target)
        plain = plan.hidden, plan.gates * plan.hidden
        return {"weights": PackedForm(gate_blocks(plain, plan.together, plan.units), plan.element)}

    def scratch(self, op: RecurrenceT, target: Target) -> Sequence[Buffer]:
        plan = self.plan(op, target)
        batch = largest_shape(op.inputs()[0])[1]
        order = [SequenceOrder.buffer(batch)] if operands_of(op, "sequence_lens") else []
        shapes = [(shape, plan.element) for shape in self.scratch_shapes(op, plan, batch)]
        return [*shapes, *order, *packing_scratch(op, self.packed(op, target))]

    def cuts(self, op: RecurrenceT, target: Target) -> Mapping[str, int]:
        blocks = self.plan(op, target).packed_shape[0]
        pack = packing_cuts(op, self.packed(op, target), target)
        return {**pack, "begin": 1, **dict.fromkeys(self.step_axes(op), blocks), "end": 1}

    def rounds(self, op: RecurrenceT, axis: str, target: Target) -> Size:
        return 1 if axis in (PACK, "begin", "end") else sizes_of(op.inputs()[0])[0]

    def private(self, op: RecurrenceT) -> Sequence[int]:
        return (ACCUMULATORS,)

    def step_axes(self, op: RecurrenceT) -> Sequence[str]:
        """Return the axes along which the phases of a step are divided, in order."""
        return ("units",)

    def emit(self, call: KernelCall[RecurrenceT]) -> None:
        op, b = call.op, call.b
        steps, batch, _ = call.one("input").extents
        plan, functions = self.plan(op, call.target), self.functions(op)
        form = self.packed(call.op, call.target)["weights"]
        packed = packed_operand(call, "weights", form, call.many("scratch")[-1])
        order = self._order(call, batch)

        def one(number: Value) -> None:
            time = b.index(steps - 1) - number if flag(op.reverse) else number
            self.step(RecurrentStep(call, plan, functions, batch, time, number, packed, order))

        if call.runs("begin"):
            self._begin(call, plan, order)
        if call.round is not None:
            one(call.round)
        elif call.runs(*self.step_axes(op)):
            with b.loop(0, steps) as number:
                one(number)
        if call.runs("end"):
            self._end(call, plan, order)

    def _order(self, call: KernelCall[RecurrenceT], batch: Index) -> SequenceOrder | None:
        """Return the order of the rows of scratch; `None` for the order of the batch, if sequences have no lengths."""
        if call.maybe("sequence_lens") is None:
            return None
        is_packed = "packing" in call.op.properties
        return SequenceOrder(call.b, call.many("scratch")[-1 if is_packed else -2], batch)

    def _begin(self, call: KernelCall[RecurrenceT], plan: Plan, order: SequenceOrder | None) -> None:
        """Set the initial state; with sequence lengths, set both states, since a sequence may begin with any step."""
        initial, states, lengths = call.one("initial_h"), call.many("scratch")[STATES], call.maybe("sequence_lens")
        if order is None or lengths is None:
            _copy_rows(call, plan, initial, states)
        else:
            order.sort(lengths, call.one("input").extents[0])
            for state in range(2):
                _copy_rows(call, plan, initial, states, lambda n, state=state: ([order.sequence(n)], [state, n]))
        if call.maybe("initial_c") is not None:
            _copy_rows(call, plan, call.one("initial_c"), call.one("last_c"))

    def _end(self, call: KernelCall[RecurrenceT], plan: Plan, order: SequenceOrder | None) -> None:
        """Store the last states, each from the state that the last step of its sequence has written."""
        states, steps = call.many("scratch")[STATES], call.one("input").extents[0]
        if order is None:
            last = dataclasses.replace(states, pointer=states.pointer.at(steps % 2 * states.strides[0], plan.element))
            _copy_rows(call, plan, last, call.one("last_h"))
            return

        def indices(n: Value) -> tuple[Sequence[Index], Sequence[Index]]:
            done = steps if flag(call.op.reverse) else order.length(n)
            return [done % 2, n], [order.sequence(n)]

        _copy_rows(call, plan, states, call.one("last_h"), indices)


def _element(op: Recurrence) -> Attribute:
    """Return the computation type of a recurrence."""
    return computed(element_of(op.inputs()[0]))


Rows = Callable[[Value], tuple[Sequence[Index], Sequence[Index]]]
"""Row → its indices in two operands, along all axes but the last."""


def _copy_rows(
    call: KernelCall, plan: Plan, source: Operand, target: Operand, rows: Rows = lambda n: ([n], [n])
) -> None:
    """Copy a state of [batch, hidden]; `rows` selects it in operands with further axes."""
    batch = call.one("last_h").extents[0]
    lanes = lanes_for(call.target, plan.element, [source.strides[-1], target.strides[-1]])

    def offset(operand: Operand, indices: Sequence[Index], j: Index) -> Index:
        return linear([*indices, j], operand.strides[-1 - len(indices) :])

    with call.b.loop(0, batch) as n:
        here, there = rows(n)

        def copy(j: Index, lanes: int) -> None:
            value = load(call.b, source, offset(source, here, j), 1, lanes)
            store(call.b, target, offset(target, there, j), value)

        vector_loop(call.b, plan.hidden, lanes, copy)


@kernel("lstm-recurrence")
class LstmRecurrenceKernel(RecurrenceKernel[LstmSteps]):
    """A product for all gates, then the cell function."""

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
            before = step.cell(n).load(b, unit, lanes)
            step.keep("sums", n, unit, *gates)
            step.keep("cells", n, unit, before)
            extra = [] if peepholes is None else [Row.of(peepholes).load(b, unit + p * hidden, lanes) for p in range(3)]
            h, c = step.functions[0](b, *gates, before, *extra)
            step.finish(n, unit, h, c)

        step.compute(cell)


@kernel("gru-recurrence")
class GruRecurrenceKernel(RecurrenceKernel[GruSteps]):
    """The products of update and reset gate, then the product of the candidate, then the blend."""

    name = "gru-recurrence"

    def at_once(self, op: GruSteps) -> int:
        # Without bias, the candidate is a product with the state times the reset gate.
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
        """Compute all gates at once: the reset gate is multiplied with the product of the candidate."""
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
        """Compute the update gate, and the state times the reset gate, for all units."""
        b = step.b

        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            sums, (update, reset) = _gates(step, n, unit, j, lanes)
            step.keep("sums", n, unit, *sums)
            step.scratch(n, UPDATE).store(b, unit, update)
            step.scratch(n, RESET_STATE).store(b, unit, reset * step.state(n).load(b, unit, lanes))

        step.compute(unit_code, panels=(0, 1), axis="gates", finishes=False)

    def _candidate(self, step: RecurrentStep) -> None:
        """Compute the new state, from the product with the state times the reset gate."""
        b, hidden, (_, blend) = step.b, step.plan.hidden, step.functions

        def unit_code(n: Index, unit: Index, j: Index, lanes: int) -> None:
            total = step.total(n, 0, j, lanes) + step.input(n).load(b, unit + 2 * hidden, lanes)
            step.keep("sums", n, unit + 2 * hidden, total)
            update = step.scratch(n, UPDATE).load(b, unit, lanes)
            (h,) = blend(b, update, total, step.state(n).load(b, unit, lanes))
            step.finish(n, unit, h)

        step.compute(unit_code, panels=(2,), reset=True, axis="candidate")


def _gates(step: RecurrentStep, n: Index, unit: Index, j: Index, lanes: int) -> tuple[list[Value], list[Value]]:
    """Return the sums of update and reset gate of `lanes` units, and the gates."""
    sums: list[Value] = []
    gates: list[Value] = []
    for gate in range(2):
        sums.append(step.gate_sum(n, gate, unit, j, lanes))
        gates += step.functions[0](step.b, sums[-1])
    return sums, gates


@kernel("rnn-recurrence")
class RnnRecurrenceKernel(RecurrenceKernel[RnnSteps]):
    """A product, then the activation function."""

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
