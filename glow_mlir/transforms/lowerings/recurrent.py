"""Lowerings of recurrent layers: one matrix product for the inputs of all steps, then one recurrence per direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, LessOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.predicate import PredicateOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, Recurrent, RnnOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import element_of, shape_of, sizes_of
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.symbols import Size

Layer = LstmOp | GruOp | RnnOp


def _slice(value: SSAValue, start: int, end: int, emit: Emitter) -> SSAValue:
    """Elements [start, end) along axis 0."""
    rest = sizes_of(value)[1:]
    return emit(SliceOp, value, starts=(start, *(0 for _ in rest)), ends=(end, *rest))


def _direction(value: SSAValue, index: int, emit: Emitter) -> SSAValue:
    """The slice of one direction: element `index` along axis 0, without that axis."""
    shape = sizes_of(value)
    part = value if shape[0] == 1 else _slice(value, index, index + 1, emit)
    return emit(ReshapeOp, part, shape=shape[1:])


def _time_major(op: Recurrent, value: SSAValue, emit: Emitter) -> SSAValue:
    """Transpose an input or initial state so that steps, or directions, precede the batch."""
    return emit(TransposeOp, value, permutation=(1, 0, 2)) if flag(op.batch_first) else value


def _state(op: Layer, value: SSAValue | None, index: int, emit: Emitter) -> SSAValue:
    """The initial state of one direction, zeros if absent."""
    if value is None:
        batch = sizes_of(op.input)[0 if flag(op.batch_first) else 1]
        return emit.splat(0.0, op.input, (batch, shape_of(op.recurrence)[-1]))
    return _direction(_time_major(op, value, emit), index, emit)


def _gate_inputs(op: Layer, x: SSAValue, bias: SSAValue | None, index: int, emit: Emitter) -> SSAValue:
    """
    The input's contribution to the gates of one direction: [steps, batch, gates·hidden], as one matrix product.

    If sequences have lengths, rows are ordered by sequence: the unused steps behind an end are contiguous, and
    predicated off.
    """
    steps, batch, width = sizes_of(x)
    matrix = _direction(op.weights, index, emit)
    if op.sequence_lens is not None:
        by_sequence = emit(TransposeOp, x, permutation=(1, 0, 2))
        product = emit(MatMulOp, by_sequence, matrix, bias, transpose_right=True)
        shown = emit(PredicateOp, product, _running(op.sequence_lens, steps, emit))
        return emit(TransposeOp, shown, permutation=(1, 0, 2))
    rows = emit(ReshapeOp, x, shape=(steps * batch, width))
    product = emit(MatMulOp, rows, matrix, bias, transpose_right=True)
    return emit(ReshapeOp, product, shape=(steps, batch, shape_of(matrix)[0]))


def _running(lengths: SSAValue, steps: Size, emit: Emitter) -> SSAValue:
    """The mask [batch, steps] of steps within the length of a sequence."""
    times = emit(ReshapeOp, positions(steps, element_of(lengths), emit), shape=(1, steps))
    return emit(LessOp, times, emit(ReshapeOp, lengths, shape=(sizes_of(lengths)[0], 1)))


def _transposed(recurrence: SSAValue, index: int, emit: Emitter) -> SSAValue:
    """The transposed recurrent weights of one direction: [hidden, gates·hidden]."""
    return emit(TransposeOp, _direction(recurrence, index, emit), permutation=(1, 0))


def _halves(bias: SSAValue, index: int, emit: Emitter) -> tuple[SSAValue, SSAValue]:
    """The input bias and the recurrent bias of one direction."""
    both = _direction(bias, index, emit)
    (width,) = shape_of(both)
    return _slice(both, 0, width // 2, emit), _slice(both, width // 2, width, emit)


def _summed_bias(bias: SSAValue | None, index: int, emit: Emitter) -> SSAValue | None:
    return None if bias is None else emit(AddOp, *_halves(bias, index, emit))


def _joined(op: Recurrent, parts: Sequence[Sequence[SSAValue]], emit: Emitter) -> list[SSAValue]:
    """Join the results of the directions: all states, then the last ones."""
    results: list[SSAValue] = []
    for position, values in enumerate(zip(*parts, strict=True)):
        axis = 1 if position == 0 else 0
        shape = sizes_of(values[0])
        columns = [emit(ReshapeOp, value, shape=(*shape[:axis], 1, *shape[axis:])) for value in values]
        result = columns[0] if len(columns) == 1 else emit(ConcatOp, columns, axis=axis)
        if flag(op.batch_first):
            result = emit(TransposeOp, result, permutation=(2, 0, 1, 3) if position == 0 else (1, 0, 2))
        results.append(result)
    return results


Parts = Callable[[int], tuple[SSAValue | None, Sequence[SSAValue | None]]]
"""Direction → the bias of the gate inputs, and the operands of its recurrence behind the state."""


def _lowered(op: Layer, partitions_of: Parts, emit: Emitter) -> list[SSAValue]:
    """Lower the layer to one recurrence per direction."""
    x = _time_major(op, op.input, emit)
    parts: list[Sequence[SSAValue]] = []
    for index in range(len(op.directions())):
        bias, rest = partitions_of(index)
        gates = _gate_inputs(op, x, bias, index, emit)
        weights, state = _transposed(op.recurrence, index, emit), _state(op, op.initial_h, index, emit)
        operands = (gates, weights, state, *rest, op.sequence_lens)
        parts.append(emit.all(op.RECURRENCE, *operands, **op.direction_properties(index)))
    return _joined(op, parts, emit)


@lowering(LstmOp)
def lstm(op: LstmOp, emit: Emitter) -> list[SSAValue]:
    """Lower to one recurrence per direction."""

    def partitions_of(index: int) -> tuple[SSAValue | None, Sequence[SSAValue | None]]:
        peepholes = None if op.peepholes is None else _direction(op.peepholes, index, emit)
        return _summed_bias(op.bias, index, emit), (_state(op, op.initial_c, index, emit), peepholes)

    return _lowered(op, partitions_of, emit)


def _gru_biases(op: GruOp, index: int, emit: Emitter) -> tuple[SSAValue | None, SSAValue | None]:
    """The bias of the gate inputs, and the bias of the candidate's product with the state before the reset gate."""
    before = flag(op.linear_before_reset)
    hidden = shape_of(op.recurrence)[-1]
    if op.bias is None:
        return None, emit.splat(0.0, op.input, (hidden,)) if before else None
    if not before:
        return _summed_bias(op.bias, index, emit), None
    of_input, of_state = _halves(op.bias, index, emit)
    of_gates = emit(PadOp, _slice(of_state, 0, 2 * hidden, emit), pads=(0, hidden))
    return emit(AddOp, of_input, of_gates), _slice(of_state, 2 * hidden, 3 * hidden, emit)


@lowering(GruOp)
def gru(op: GruOp, emit: Emitter) -> list[SSAValue]:
    """Lower to one recurrence per direction."""

    def partitions_of(index: int) -> tuple[SSAValue | None, Sequence[SSAValue | None]]:
        bias, state_bias = _gru_biases(op, index, emit)
        return bias, (state_bias,)

    return _lowered(op, partitions_of, emit)


@lowering(RnnOp)
def rnn(op: RnnOp, emit: Emitter) -> list[SSAValue]:
    """Lower to one recurrence per direction."""
    return _lowered(op, lambda index: (_summed_bias(op.bias, index, emit), ()), emit)
