"""Semantics of recurrent layers: each step in f64, its states rounded to the element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.recurrence import (
    GruRecurrenceOp,
    GruRecurrenceWithSumsOp,
    GruSteps,
    LstmRecurrenceOp,
    LstmRecurrenceWithSumsOp,
    LstmSteps,
    Recurrence,
    RnnRecurrenceOp,
    RnnRecurrenceWithSumsOp,
    RnnSteps,
)
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, Recurrent, RnnOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of
from glow_mlir.interpreter.scalar import evaluate
from glow_mlir.ir.registry import semantics

Array = np.ndarray
Step = Callable[[Array, list[Array]], tuple[list[Array], Array]]
"""
One step in f64: maps the inputs of all gates [batch, gates·hidden] and the states to the new states, and the
pre-activations of the gates.
"""


def on_arrays(count: int, body: Callable[..., Scalar | tuple[Scalar, ...]]) -> Callable[..., list[Array]]:
    """Convert scalar code of `count` f64 arguments to a function on arrays that broadcast."""
    block = Block(arg_types=[f64] * count)

    def insert(op: Operation) -> Operation:
        block.add_op(op)
        return op

    builder = ScalarBuilder(insert)
    results = body(builder, *(builder.wrap(argument, f64) for argument in block.args))
    outputs = [result.value for result in (results if isinstance(results, tuple) else (results,))]
    return lambda *arrays: evaluate(block, arrays, outputs)


def _exact(array: Array | None) -> Array | None:
    return None if array is None else array.astype(np.float64)


def lstm_step(op: LstmSteps, weights: Array, peepholes: Array | None) -> Step:
    """One step of `lstm_recurrence`; states are h and c."""
    extra = [] if peepholes is None else np.split(peepholes, 3)

    def body(b: ScalarBuilder, *values: Scalar) -> tuple[Scalar, Scalar]:
        return op.cell(b, values[:4], values[4], values[5:])

    cell = on_arrays(5 + len(extra), body)

    def step(inputs: Array, states: list[Array]) -> tuple[list[Array], Array]:
        h, c = states
        sums = inputs + h @ weights
        return cell(*np.split(sums, 4, axis=1), c, *extra), sums

    return step


def gru_step(op: GruSteps, weights: Array, bias: Array | None) -> Step:
    """One step of `gru_recurrence`; the state is h."""
    hidden = weights.shape[0]
    gate = on_arrays(1, op.gate)
    blend = on_arrays(3, op.blend)

    def step(inputs: Array, states: list[Array]) -> tuple[list[Array], Array]:
        (h,) = states
        sums = inputs[:, : 2 * hidden] + h @ weights[:, : 2 * hidden]
        (gates,) = gate(sums)
        update, reset = gates[:, :hidden], gates[:, hidden:]
        of_input, last = inputs[:, 2 * hidden :], weights[:, 2 * hidden :]
        candidate = of_input + (reset * h) @ last if bias is None else h @ last + bias
        total = candidate if bias is None else of_input + reset * candidate
        return blend(update, total, h), np.concatenate([sums, candidate], axis=1)

    return step


def rnn_step(op: RnnSteps, weights: Array) -> Step:
    """One step of `rnn_recurrence`; the state is h."""
    cell = on_arrays(1, op.cell)

    def step(inputs: Array, states: list[Array]) -> tuple[list[Array], Array]:
        sums = inputs + states[0] @ weights
        return cell(sums), sums

    return step


def run_steps(
    op: Recurrence, step: Step, inputs: Array, states: Sequence[Array], lengths: Array | None
) -> tuple[list[Array], list[Array]]:
    """
    Run all steps; returns all states, then the last ones, and in f64 the gate pre-activations, and the last state
    before each step.

    Steps from `lengths` on keep the states and yield 0.
    """
    steps, batch, _ = inputs.shape
    dtype, current = states[0].dtype, list(states)
    results = np.zeros((steps, *states[0].shape), dtype)
    kept = [np.zeros((steps, batch, width)) for width in (inputs.shape[2], states[0].shape[1])]
    limits = np.full(batch, steps) if lengths is None else lengths
    for time in reversed(range(steps)) if flag(op.reverse) else range(steps):
        after, sums = step(inputs[time], [state.astype(np.float64) for state in current])
        new = [state.astype(dtype) for state in after]
        active = (time < limits)[:, np.newaxis]
        for array, value in zip(kept, (sums, current[-1]), strict=True):
            array[time] = np.where(active, value, 0)
        current = [np.where(active, after, before) for after, before in zip(new, current, strict=True)]
        results[time] = np.where(active, current[0], 0)
    return [results, *current], kept


def _results(op: Recurrence, found: Sequence[Array], kept: Sequence[Array]) -> tuple[Array, ...]:
    """The results of a recurrence, with the optional ones that it has."""
    further = op.outputs()[len(found) :]
    rounded = [array.astype(numpy_dtype(element_of(value))) for array, value in zip(kept, further, strict=False)]
    return (*found, *rounded)


@semantics(LstmRecurrenceOp)
@semantics(LstmRecurrenceWithSumsOp)
def lstm_recurrence(
    op: LstmSteps,
    inputs: Array,
    weights: Array,
    initial_h: Array,
    initial_c: Array,
    peepholes: Array | None,
    lengths: Array | None,
) -> tuple[Array, ...]:
    """Run all steps."""
    step = lstm_step(op, weights.astype(np.float64), _exact(peepholes))
    return _results(op, *run_steps(op, step, inputs.astype(np.float64), (initial_h, initial_c), lengths))


@semantics(GruRecurrenceOp)
@semantics(GruRecurrenceWithSumsOp)
def gru_recurrence(
    op: GruSteps,
    inputs: Array,
    weights: Array,
    initial_h: Array,
    bias: Array | None,
    lengths: Array | None,
) -> tuple[Array, ...]:
    """Run all steps."""
    step = gru_step(op, weights.astype(np.float64), _exact(bias))
    return _results(op, *run_steps(op, step, inputs.astype(np.float64), (initial_h,), lengths))


@semantics(RnnRecurrenceOp)
@semantics(RnnRecurrenceWithSumsOp)
def rnn_recurrence(
    op: RnnSteps, inputs: Array, weights: Array, initial_h: Array, lengths: Array | None
) -> tuple[Array, ...]:
    """Run all steps."""
    step = rnn_step(op, weights.astype(np.float64))
    return _results(op, *run_steps(op, step, inputs.astype(np.float64), (initial_h,), lengths))


MakeStep = Callable[[int, Recurrence, Array, Array], tuple[Step, Array]]
"""Direction, its recurrence, weights and state biases → one step, and the addend of the gate inputs."""


def _layer(
    op: Recurrent,
    operands: tuple[Array, Array, Array],
    bias: Array | None,
    lengths: Array | None,
    states: Sequence[Array | None],
    make_step: MakeStep,
) -> tuple[Array, ...]:
    """Compute all directions of a layer from input, weights and recurrence, and stack them."""
    x, weights, recurrence = operands
    batch_first = flag(op.batch_first)
    inputs = np.moveaxis(x, 1, 0) if batch_first else x
    zero = np.zeros((inputs.shape[1], recurrence.shape[-1]), x.dtype)
    results: list[list[Array]] = []
    for index in range(len(op.directions())):
        # Without operands: only gates and direction are queried.
        part = op.RECURRENCE.create(properties=op.direction_properties(index))
        both = np.zeros(2 * weights.shape[1]) if bias is None else bias[index].astype(np.float64)
        of_input, of_state = np.split(both, 2)
        step, addend = make_step(index, part, recurrence[index].astype(np.float64).T, of_state)
        gates = inputs.astype(np.float64) @ weights[index].astype(np.float64).T + (of_input + addend)
        initial = [zero if s is None else (s[:, index] if batch_first else s[index]) for s in states]
        results.append(run_steps(part, step, gates, initial, lengths)[0])
    first, *last = (list(parts) for parts in zip(*results, strict=True))
    stacked = np.stack(first, axis=2).transpose(1, 0, 2, 3) if batch_first else np.stack(first, axis=1)
    return (stacked, *(np.stack(parts, axis=1 if batch_first else 0) for parts in last))


@semantics(LstmOp)
def lstm(
    op: LstmOp,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    peepholes: Array | None,
) -> tuple[Array, ...]:
    """Compute all directions."""

    def make_step(index: int, part: Recurrence, matrix: Array, of_state: Array) -> tuple[Step, Array]:
        extra = None if peepholes is None else peepholes[index].astype(np.float64)
        return lstm_step(cast(LstmSteps, part), matrix, extra), of_state

    return _layer(op, (x, weights, recurrence), bias, lengths, (initial_h, initial_c), make_step)


@semantics(GruOp)
def gru(
    op: GruOp,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
) -> tuple[Array, ...]:
    """Compute all directions."""

    def make_step(_: int, part: Recurrence, matrix: Array, of_state: Array) -> tuple[Step, Array]:
        gru_part, hidden = cast(GruSteps, part), matrix.shape[0]
        if not flag(op.linear_before_reset):
            return gru_step(gru_part, matrix, None), of_state
        of_gates = np.concatenate([of_state[: 2 * hidden], np.zeros(hidden)])
        return gru_step(gru_part, matrix, of_state[2 * hidden :]), of_gates

    return _layer(op, (x, weights, recurrence), bias, lengths, (initial_h,), make_step)


@semantics(RnnOp)
def rnn(
    op: RnnOp,
    x: Array,
    weights: Array,
    recurrence: Array,
    bias: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
) -> tuple[Array, ...]:
    """Compute all directions."""

    def make_step(_: int, part: Recurrence, matrix: Array, of_state: Array) -> tuple[Step, Array]:
        return rnn_step(cast(RnnSteps, part), matrix), of_state

    return _layer(op, (x, weights, recurrence), bias, lengths, (initial_h,), make_step)
