"""LSTM over a sequence, of floats, or of values of int8 with a cell of int16; states are kept from call to call."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.loop import Rows, Trips
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.tflite.node import ACTIVATIONS, TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.operators.integer_lstm import IntegerCell

INPUT, WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, PROJECTED_BIAS = 0, 1, 5, 9, 12, 16, 17
"""The first operands of each kind; weights and biases are those of the input, forget, cell and output gates."""

OUTPUT_STATE, CELL_STATE, NORMS = 18, 19, 20


@tflite_operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
def unidirectional_lstm(node: TfliteNode) -> SSAValue:
    """The hidden values of all steps of [T, B, K] or [B, T, K], by the options."""
    _check(node)
    cell = FloatCell(node) if node.is_float() else IntegerCell(node)
    is_time_first = bool(node.options.number(3, "?"))
    value = node.input(INPUT)
    steps = value if is_time_first else node.emit(TransposeOp, value, permutation=(1, 0, 2))
    count, batch, depth = shape_of(steps)
    units = node.shape(WEIGHTS + 1)[0] if node.shape(WEIGHTS + 1) else 0
    shown = node.shape(PROJECTION)[0] if node.has(PROJECTION) and node.shape(PROJECTION) else units
    for position, width in ((OUTPUT_STATE, shown), (CELL_STATE, units)):
        if node.shape(position) != (batch, width):
            reason = f"the state {list(node.shape(position))} does not fit a batch of {batch} and {width} units"
            raise node.unsupported(reason)
    rows = node.emit(ReshapeOp, steps, shape=(count * batch, depth))
    sums = cell.of_input(rows)
    sums = node.emit(ReshapeOp, sums, shape=(count, batch, shape_of(sums)[1]))
    body = Body(node, [node.state(OUTPUT_STATE), node.state(CELL_STATE)], [Rows(sums)])
    with node.builder.inside(body.block):
        hidden, state = cell.step(*body.rows, *body.carried)
    hidden, state, found = body.emit(Trips(count), [hidden, state], [Rows(hidden)])
    node.keep(OUTPUT_STATE, hidden)
    node.keep(CELL_STATE, state)
    return found if is_time_first else node.emit(TransposeOp, found, permutation=(1, 0, 2))


def _check(node: TfliteNode) -> None:
    """Raise `UnsupportedError` for forms that are not supported."""
    if ACTIVATIONS.get(node.options.number(0, "b")) != "tanh":
        raise node.unsupported("has an activation function other than tanh")
    if any(node.has(position) for position in range(NORMS, NORMS + 4)):
        raise node.unsupported("with normalized gates is not supported")
    if bool(node.options.number(5, "?")):
        raise node.unsupported("with diagonal weights is not supported")
    if len(node.shape(INPUT)) != 3:
        raise node.unsupported(f"of the shape {list(node.shape(INPUT))} is not supported")


def gates_of(node: TfliteNode) -> list[int]:
    """The numbers of gates with weights: without those of the input gate, this one is 1 less the forget gate."""
    return [gate for gate in range(4) if node.has(WEIGHTS + gate)]


class FloatCell:
    """A step of floats."""

    def __init__(self, node: TfliteNode) -> None:
        self._node, self._gates = node, gates_of(node)
        self._clips = [node.options.real(field) for field in (1, 2)]
        if not all(node.is_float(first + gate) for first in (WEIGHTS, RECURRENT) for gate in self._gates):
            raise node.unsupported("of floats with weights of integers is not supported")
        self._recurrent = self._joined(RECURRENT)

    def _joined(self, first: int) -> SSAValue:
        """The weights or biases of all gates."""
        parts = [self._node.known(first + gate, "a weight") for gate in self._gates]
        if len({part.shape[1:] for part in parts}) != 1 or not parts[0].ndim:
            raise self._node.unsupported(f"the weights of gates from operand {first} on do not fit each other")
        return self._node.constant(np.concatenate(parts), f"{self._node.name}.{first}")

    def of_input(self, rows: SSAValue) -> SSAValue:
        """What the input adds to all gates, with the bias."""
        return self._node.emit(MatMulOp, rows, self._joined(WEIGHTS), self._joined(BIASES), transpose_right=True)

    def _gate(self, sums: SSAValue, position: int, cell: SSAValue, gate: int) -> SSAValue:
        """The sum of one gate, with what the cell adds to it."""
        node, (batch, width) = self._node, shape_of(cell)
        part = node.emit(SliceOp, sums, starts=[0, position * width], ends=[batch, (position + 1) * width])
        peephole = {0: PEEPHOLES, 1: PEEPHOLES + 1, 3: PEEPHOLES + 2}.get(gate)
        if peephole is None or not node.has(peephole):
            return part
        return node.emit(AddOp, part, node.emit(MulOp, cell, node.input(peephole)))

    def step(self, sums: SSAValue, hidden: SSAValue, cell: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The next hidden value and cell."""
        node = self._node
        sums = node.emit(AddOp, sums, node.emit(MatMulOp, hidden, self._recurrent, transpose_right=True))
        positions = {gate: position for position, gate in enumerate(self._gates)}
        forget = node.emit(SigmoidOp, self._gate(sums, positions[1], cell, 1))
        update = node.emit(TanhOp, self._gate(sums, positions[2], cell, 2))
        if 0 in positions:
            taken = node.emit(SigmoidOp, self._gate(sums, positions[0], cell, 0))
        else:
            taken = node.emit(SubOp, node.splat(1, forget), forget)
        cell = node.emit(AddOp, node.emit(MulOp, forget, cell), node.emit(MulOp, taken, update))
        cell = self._clipped(cell, self._clips[0])
        shown = node.emit(SigmoidOp, self._gate(sums, positions[3], cell, 3))
        found = node.emit(MulOp, shown, node.emit(TanhOp, cell))
        if node.has(PROJECTION):
            bias = node.input(PROJECTED_BIAS) if node.has(PROJECTED_BIAS) else None
            found = node.emit(MatMulOp, found, node.input(PROJECTION), bias, transpose_right=True)
            found = self._clipped(found, self._clips[1])
        return found, cell

    def _clipped(self, value: SSAValue, limit: float) -> SSAValue:
        node = self._node
        return node.emit(ClipOp, value, node.splat(-limit, value), node.splat(limit, value)) if limit > 0 else value
