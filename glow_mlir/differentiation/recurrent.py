"""
Gradients of recurrences: a loop from the last step to the first that contains only sequential work.

A differentiated recurrence keeps the pre-activations of its gates. The loop computes their cotangents for all steps;
one product of them and the states gives those of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.generic_form import is_half
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, LessOp, MulOp, SubOp, WhereOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.glow_high.recurrence import (
    GruRecurrenceOp,
    GruRecurrenceWithSumsOp,
    LstmRecurrenceOp,
    LstmRecurrenceWithSumsOp,
    Recurrence,
    RnnRecurrenceOp,
    RnnRecurrenceWithSumsOp,
)
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, Recurrent, RnnOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError, static
from glow_mlir.differentiation.contributions import Contributions, converted_like, reduced_to, zeros_like
from glow_mlir.differentiation.differentiator import Differentiator
from glow_mlir.differentiation.gates import gated
from glow_mlir.differentiation.loops import emit_loop
from glow_mlir.differentiation.lowered import by_lowering, supersede
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import GRADIENTS, gradient
from glow_mlir.support.dataclass import dataclass

Cotangents = tuple[SSAValue | None, ...]
Values = Sequence[SSAValue]

Step = Callable[[Emitter, Values, Values, Cotangents], tuple[Values, Values]]
"""
Emits one reverse step. Its inputs are the cotangents of the states after the step, rows, and the existing cotangents of
the step's kept values; its results are the cotangents of the states before the step, and further results for each step.
"""


@gradient(LstmOp)
@gradient(GruOp)
@gradient(RnnOp)
def recurrent(op: Recurrent, cotangents: Cotangents, emit: Emitter) -> Contributions:
    """The gradients of one product for the inputs of all steps, and of a recurrence for each direction."""
    return by_lowering(op, cotangents, emit, replaces=True)


KEEPING: Mapping[type[Recurrence], type[Recurrence]] = {
    LstmRecurrenceOp: LstmRecurrenceWithSumsOp,
    GruRecurrenceOp: GruRecurrenceWithSumsOp,
    RnnRecurrenceOp: RnnRecurrenceWithSumsOp,
}
"""Recurrence → its form that keeps the values for its gradient."""


@gradient(LstmRecurrenceOp)
@gradient(GruRecurrenceOp)
@gradient(RnnRecurrenceOp)
def recurrence(op: Recurrence, cotangents: Cotangents, emit: Emitter) -> Contributions:
    """The gradients of the form that keeps more, which replaces this one."""
    wanted = KEEPING[type(op)]
    keeping = wanted.inferred(op.operands, op.properties, op.location)
    Emitter(op, emit.storage).insert(keeping)
    further = keeping.results[len(op.results) :]
    supersede(op, keeping.results[: len(op.results)])
    rule = GRADIENTS.get(wanted)
    assert rule is not None
    return rule(keeping, (*cotangents, *(None for _ in further)), emit)


@dataclass(frozen=True)
class Sweep:
    """The reverse pass through the steps of a recurrence; half-float states are computed in f32."""

    op: Recurrence
    cotangents: Cotangents
    emit: Emitter

    def wide(self, value: SSAValue) -> SSAValue:
        """A value in the element type of the computation."""
        return self.emit(CastOp, value, to=f32) if is_half(element_of(value)) else value

    @cached_property
    def inputs(self) -> SSAValue:
        """The contribution of the layer's input to the gates, for all steps."""
        return self.wide(self.op.inputs()[0])

    @cached_property
    def weights(self) -> SSAValue:
        """[hidden, gates·hidden]."""
        return self.wide(self.op.inputs()[1])

    @cached_property
    def initial(self) -> SSAValue:
        """The state before the first step."""
        return self.wide(self.op.inputs()[2])

    @cached_property
    def steps(self) -> int:
        """The number of steps; raises `UnsupportedError` if it is known only at run time."""
        try:
            return static(sizes_of(self.op.inputs()[0])[:1])[0]
        except RunTimeSizeError as error:
            name = self.op.name.removeprefix("glow_high.")
            what = f"{name} has a gradient where the number of steps is known"
            raise UnsupportedError(what, node=location_name(self.op.location), hint="give the length") from error

    @cached_property
    def active(self) -> SSAValue | None:
        """[steps, batch, 1]: whether the sequence has the step; `None` if all sequences have all steps."""
        lengths = next((value for name, (value,) in self.op.operand_groups() if name == "sequence_lens"), None)
        if lengths is None:
            return None
        emit, (steps, batch, _) = self.emit, sizes_of(self.inputs)
        times = emit(ReshapeOp, positions(steps, element_of(lengths), emit), shape=(steps, 1, 1))
        return emit(LessOp, times, emit(ReshapeOp, lengths, shape=(1, batch, 1)))

    @cached_property
    def kept(self) -> Values:
        """The gate pre-activations of all steps; for an LSTM also the cells before them."""
        return self.op.results[1 + self.op.STATES :]

    def before(self, values: SSAValue, initial: SSAValue) -> SSAValue:
        """[steps, batch, hidden]: the values before each step, from the values after each."""
        emit, steps, row = self.emit, self.steps, sizes_of(values)[1:]
        reverse = flag(self.op.reverse)
        first, last = (1, steps) if reverse else (0, steps - 1)
        begin = emit(ReshapeOp, initial, shape=(1, *row))
        zero = (0,) * len(row)
        rest = [emit(SliceOp, values, starts=(first, *zero), ends=(last, *row))] if steps > 1 else []
        if rest and reverse and self.active is not None:
            # The first step of a short sequence is not the loop's first.
            later = emit(SliceOp, self.active, starts=(1, 0, 0), ends=(steps, row[0], 1))
            rest = [emit(WhereOp, later, rest[0], begin)]
        parts = [*rest, begin] if reverse else [begin, *rest]
        return emit(ConcatOp, parts, axis=0) if rest else begin

    @cached_property
    def states(self) -> SSAValue:
        """[steps, batch, hidden]: the state before each step."""
        return self.before(self.wide(self.op.results[0]), self.initial)

    def by_weights(self, rows: SSAValue, cotangents: SSAValue) -> SSAValue:
        """The cotangent of weights that multiply rows of all steps."""
        return self.emit(MatMulOp, self._flat(rows), self._flat(cotangents), transpose_left=True)

    def _flat(self, rows: SSAValue) -> SSAValue:
        steps, batch, width = sizes_of(rows)
        return self.emit(ReshapeOp, rows, shape=(steps * batch, width))

    def final(self, position: int) -> SSAValue:
        """The cotangent of a final state."""
        given = self.cotangents[1 + position]
        return zeros_like(self.initial, self.emit) if given is None else self.wide(given)

    def run(self, rows: Values, carried: int, step: Step) -> tuple[list[SSAValue], list[SSAValue]]:
        """
        Go back through the steps; return the cotangents of the initial states, and the results of all steps.

        Steps that a sequence does not have leave the cotangents of states unchanged, and yield 0.
        """
        first, *further = (self.cotangents[0], *self.cotangents[1 + self.op.STATES :])
        given = [] if first is None else [self.wide(first)]
        masks = [] if self.active is None else [self.active]

        def trip(emit: Emitter, _: SSAValue, states: Values, own: Values) -> tuple[Values, Values]:
            total = emit(AddOp, states[0], own[len(rows)]) if given else states[0]
            of_kept = iter(own[len(rows) + len(given) :])
            by_kept = tuple(None if one is None else next(of_kept) for one in further)
            after, outputs = step(emit, [total, *states[1:]], own[: len(rows)], by_kept)
            if masks:
                after = [emit(WhereOp, own[-1], new, old) for new, old in zip(after, states, strict=True)]
                outputs = [emit(WhereOp, own[-1], value, emit.splat(0, value)) for value in outputs]
            return after, outputs

        backwards = not flag(self.op.reverse)
        by_kept = [one for one in further if one is not None]
        taken = [Rows(value, backwards) for value in (*rows, *given, *by_kept, *masks)]
        initial = [self.final(position) for position in range(carried)]
        return emit_loop(Trips(self.steps), initial, taken, trip, self.emit, (backwards,))

    def contributions(self, found: Mapping[str, SSAValue | None]) -> Contributions:
        """Cotangents of operands, in their element types."""
        operands = {name: value for name, (value,) in self.op.operand_groups()}

        def contribution(name: str) -> SSAValue | None:
            value, like = found[name], operands[name]
            return None if value is None or like is None else converted_like(value, like, self.emit)

        return {name: partial(contribution, name) for name in found}


def _parts(values: SSAValue, count: int, emit: Emitter) -> list[SSAValue]:
    """Equal parts along the last axis."""
    *front, width = sizes_of(values)
    size = static((width,))[0] // count
    zero = (0,) * len(front)
    return [
        emit(SliceOp, values, starts=(*zero, position * size), ends=(*front, (position + 1) * size))
        for position in range(count)
    ]


def _joined(parts: Values, emit: Emitter) -> SSAValue:
    return emit(ConcatOp, parts, axis=-1)


def _plus(value: SSAValue, other: SSAValue | None, emit: Emitter) -> SSAValue:
    return value if other is None else emit(AddOp, value, other)


def _cotangents(
    targets: Mapping[SSAValue, SSAValue], sources: Values, since: Operation | None, emit: Emitter
) -> Values:
    """The cotangents of sources through the operators emitted since an operation; 0 without influence."""
    found = Differentiator(emit.anchor, emit.storage, sources).run(targets.items(), since)
    return [zeros_like(source, emit) if one is None else one for source, one in zip(sources, found, strict=True)]


def _back_by(cotangents: SSAValue, weights: SSAValue, emit: Emitter) -> SSAValue:
    """The cotangent of a state that is multiplied by weights."""
    return emit(MatMulOp, cotangents, weights, transpose_right=True)


def _lstm_cell(op: LstmRecurrenceWithSumsOp, gates: Values, c: SSAValue, peepholes: Values, emit: Emitter) -> Values:
    """The new state and cell, as `LstmSteps.cell` says."""
    gate, candidate, output = op.functions()

    def at(position: int, peephole: int, cell: SSAValue) -> SSAValue:
        return emit(AddOp, gates[position], emit(MulOp, peepholes[peephole], cell)) if peepholes else gates[position]

    enters = gated(gate, at(0, 0, c), emit)
    stays = emit(SubOp, emit.splat(1, c), enters) if flag(op.input_forget) else gated(gate, at(2, 2, c), emit)
    new = emit(AddOp, emit(MulOp, stays, c), emit(MulOp, enters, gated(candidate, gates[3], emit)))
    leaves = gated(gate, at(1, 1, new), emit)
    return emit(MulOp, leaves, gated(output, new, emit)), new


@gradient(LstmRecurrenceWithSumsOp)
def lstm_recurrence(op: LstmRecurrenceWithSumsOp, cotangents: Cotangents, emit: Emitter) -> Contributions:
    """Each step propagates the cotangents of its pre-activations through the weights, and that of its cell."""
    sweep = Sweep(op, cotangents, emit)
    peepholes = [] if op.peepholes is None else _parts(sweep.wide(op.peepholes), 3, emit)

    def step(emit: Emitter, states: Values, rows: Values, by_kept: Cotangents) -> tuple[Values, Values]:
        since = emit.anchor.prev_op
        gates, c = _parts(rows[0], 4, emit), rows[1]
        h, new = _lstm_cell(op, gates, c, peepholes, emit)
        *by_gates, by_cell = _cotangents({h: states[0], new: states[1]}, [*gates, c], since, emit)
        by_arguments = _joined(by_gates, emit)  # Cotangents of the gate arguments, which include peepholes.
        by_sums = _plus(by_arguments, by_kept[0], emit)
        before = [_back_by(by_sums, sweep.weights, emit), _plus(by_cell, by_kept[1], emit)]
        return before, [by_sums, *([by_arguments] if peepholes and by_sums is not by_arguments else [])]

    (by_h, by_c), outputs = sweep.run(sweep.kept, 2, step)
    by_sums = outputs[0]
    found = {
        "input": by_sums,
        "weights": sweep.by_weights(sweep.states, by_sums),
        "initial_h": by_h,
        "initial_c": by_c,
        "peepholes": _by_peepholes(op, sweep, outputs[-1]) if peepholes else None,
    }
    return sweep.contributions(found)


def _by_peepholes(op: LstmRecurrenceWithSumsOp, sweep: Sweep, by_arguments: SSAValue) -> SSAValue | None:
    """The cotangents of gates times the cells that their peepholes read; the output gate reads the new cell."""
    emit, (sums, cells) = sweep.emit, sweep.kept
    assert op.peepholes is not None
    peepholes = sweep.wide(op.peepholes)
    _, new = _lstm_cell(op, _parts(sums, 4, emit), cells, _parts(peepholes, 3, emit), emit)
    by_input, by_output, by_forget, _ = _parts(by_arguments, 4, emit)
    seen = [(by_input, cells), (by_output, new), (by_forget, cells)]
    products = _joined([emit(MulOp, given, cell) for given, cell in seen], emit)
    return reduced_to(products, peepholes, emit)


def _blend(op: GruRecurrenceWithSumsOp, update: SSAValue, total: SSAValue, h: SSAValue, emit: Emitter) -> SSAValue:
    """The new state, as `GruSteps.blend` says."""
    candidate = gated(op.functions()[1], total, emit)
    return emit(AddOp, emit(MulOp, emit(SubOp, emit.splat(1, update), update), candidate), emit(MulOp, update, h))


@gradient(GruRecurrenceWithSumsOp)
def gru_recurrence(op: GruRecurrenceWithSumsOp, cotangents: Cotangents, emit: Emitter) -> Contributions:
    """The reset gate multiplies the product if there is a bias, otherwise the state."""
    sweep = Sweep(op, cotangents, emit)
    return _gru_with_reset_product(op, sweep) if op.bias is not None else _gru_with_reset_state(op, sweep)


def _gru_with_reset_product(op: GruRecurrenceWithSumsOp, sweep: Sweep) -> Contributions:
    emit, gate = sweep.emit, op.functions()[0]
    assert op.bias is not None
    candidates = _parts(sweep.inputs, 3, emit)[2]

    def step(emit: Emitter, states: Values, rows: Values, by_kept: Cotangents) -> tuple[Values, Values]:
        since = emit.anchor.prev_op
        sums, of_input, h = _parts(rows[0], 3, emit), *rows[1:]
        update, reset = (gated(gate, value, emit) for value in sums[:2])
        total = emit(AddOp, of_input, emit(MulOp, reset, sums[2]))
        new = _blend(op, update, total, h, emit)
        *by_sums, by_input, by_state = _cotangents({new: states[0]}, [*sums, of_input, h], since, emit)
        by_product = _plus(_joined(by_sums, emit), by_kept[0], emit)
        before = emit(AddOp, by_state, _back_by(by_product, sweep.weights, emit))
        return [before], [by_product, by_input]

    (by_h,), (by_products, by_candidate) = sweep.run([*sweep.kept, candidates, sweep.states], 1, step)
    *by_gates, by_factor = _parts(by_products, 3, emit)
    found = {
        "input": _joined([*by_gates, by_candidate], emit),
        "weights": sweep.by_weights(sweep.states, by_products),
        "initial_h": by_h,
        "bias": reduced_to(by_factor, op.bias, emit),
    }
    return sweep.contributions(found)


def _gru_with_reset_state(op: GruRecurrenceWithSumsOp, sweep: Sweep) -> Contributions:
    emit, gate = sweep.emit, op.functions()[0]
    first, second, last = _parts(sweep.weights, 3, emit)
    of_gates = _joined([first, second], emit)
    (sums,) = sweep.kept
    reset_states = emit(MulOp, gated(gate, _parts(sums, 3, emit)[1], emit), sweep.states)

    def step(emit: Emitter, states: Values, rows: Values, by_kept: Cotangents) -> tuple[Values, Values]:
        since = emit.anchor.prev_op
        (at_update, at_reset, total), h = _parts(rows[0], 3, emit), rows[1]
        further = [None] * 3 if by_kept[0] is None else _parts(by_kept[0], 3, emit)
        new = _blend(op, gated(gate, at_update, emit), total, h, emit)
        by_update, by_total, by_state = _cotangents({new: states[0]}, [at_update, total, h], since, emit)
        by_total = _plus(by_total, further[2], emit)
        by_product = _back_by(by_total, last, emit)
        since = emit.anchor.prev_op
        product = emit(MulOp, gated(gate, at_reset, emit), h)
        by_reset, by_reset_state = _cotangents({product: by_product}, [at_reset, h], since, emit)
        by_gates = [_plus(one, other, emit) for one, other in zip((by_update, by_reset), further, strict=False)]
        joined = _joined(by_gates, emit)
        direct = emit(AddOp, by_state, by_reset_state)
        return [emit(AddOp, direct, _back_by(joined, of_gates, emit))], [joined, by_total]

    (by_h,), (by_gates, by_total) = sweep.run([sums, sweep.states], 1, step)
    by_weights = [sweep.by_weights(sweep.states, by_gates), sweep.by_weights(reset_states, by_total)]
    found = {
        "input": _joined([by_gates, by_total], emit),
        "weights": _joined(by_weights, emit),
        "initial_h": by_h,
    }
    return sweep.contributions(found)


@gradient(RnnRecurrenceWithSumsOp)
def rnn_recurrence(op: RnnRecurrenceWithSumsOp, cotangents: Cotangents, emit: Emitter) -> Contributions:
    """The cotangent of the state is propagated through its gate function, then back through the weights."""
    sweep = Sweep(op, cotangents, emit)

    def step(emit: Emitter, states: Values, rows: Values, by_kept: Cotangents) -> tuple[Values, Values]:
        since = emit.anchor.prev_op
        new = gated(op.functions()[0], rows[0], emit)
        (by_sums,) = _cotangents({new: states[0]}, rows, since, emit)
        by_sums = _plus(by_sums, by_kept[0], emit)
        return [_back_by(by_sums, sweep.weights, emit)], [by_sums]

    (by_h,), (by_sums,) = sweep.run(sweep.kept, 1, step)
    return sweep.contributions(
        {"input": by_sums, "weights": sweep.by_weights(sweep.states, by_sums), "initial_h": by_h}
    )
