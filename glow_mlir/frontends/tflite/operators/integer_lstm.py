"""The step of an LSTM of int8 with a cell of int16, in integers: gates are sums with 12 fraction bits."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, ClipOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import IntegerRescaleOp, StorageCastOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.tflite.node import TfliteNode
from glow_mlir.frontends.tflite.operators.interpolation import number, sigmoid_form
from glow_mlir.frontends.tflite.operators.rescaling import quantized_multipliers

INPUT, WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, OUTPUT_STATE, CELL_STATE = 0, 1, 5, 9, 12, 16, 18, 19

GATE_BITS = 12
"""The fraction bits of sums of gates."""

UNIT_BITS = 15
"""The fraction bits of numbers from -1 to 1."""


class IntegerCell:
    """A step in integers, of i32 but for hidden values of int8 and cells of int16."""

    def __init__(self, node: TfliteNode) -> None:
        self._node = node
        self._gates = [gate for gate in range(4) if node.has(WEIGHTS + gate)]
        kinds = node.tensor(INPUT).dtype, node.tensor(OUTPUT_STATE).dtype, node.tensor(CELL_STATE).dtype
        if kinds != ("int8", "int8", "int16") or any(node.has(PEEPHOLES + gate) for gate in range(3)):
            raise node.unsupported(f"of {', '.join(kinds)}, or with peepholes, is not supported")
        if node.has(PROJECTION) or node.options.real(2) > 0:
            raise node.unsupported("of integers with a projection is not supported")
        self._power = round(math.log2(node.scale(node.tensor(CELL_STATE))))
        if 2.0**self._power != node.scale(node.tensor(CELL_STATE)) or not -15 <= self._power <= -9:
            raise node.unsupported("has a cell whose scale is no power of 2 from 2^-15 to 2^-9")
        self._clip = int(np.clip(node.options.real(1) / node.scale(node.tensor(CELL_STATE)), 0, 32767))
        self._recurrent = self._joined(RECURRENT)
        width = node.shape(RECURRENT + 1)[0]
        self._none = node.constant(np.zeros(width * len(self._gates), np.int32), f"{node.name}.none")

    def _joined(self, first: int) -> SSAValue:
        """The weights or biases of all gates."""
        parts = [self._node.known(first + gate, "a weight") for gate in self._gates]
        if len({part.shape[1:] for part in parts}) != 1 or not parts[0].ndim:
            raise self._node.unsupported(f"the weights of gates from operand {first} on do not fit each other")
        return self._node.constant(np.concatenate(parts), f"{self._node.name}.{first}")

    def _product(self, value: SSAValue, position: int, first: int, weights: SSAValue, bias: SSAValue) -> SSAValue:
        """Sums of 16 bits, of i32, that an operand at a position adds to all gates."""
        node = self._node
        values = node.emit(StorageCastOp, value, to=node.type_of(node.tensor(position)))
        total = node.emit(MatMulOp, values, weights, bias, transpose_right=True, to=i32)
        own, factors = np.float32(node.scale(node.tensor(position))), list[float]()
        for gate in self._gates:
            scale = np.float32(node.scale(node.tensor(first + gate))) * own / np.float32(2.0**-GATE_BITS)
            factors += [float(scale)] * node.shape(first + gate)[0]
        operands = (
            node.constant(item, f"{node.name}.{first}.{role}")
            for item, role in zip(quantized_multipliers(np.array(factors)), ("multiplier", "shift"), strict=True)
        )
        return node.cast(node.emit(IntegerRescaleOp, total, *operands, to=i16, rounding="twice"), i32)

    def of_input(self, rows: SSAValue) -> SSAValue:
        """What the input adds to all gates, with the bias."""
        return self._product(rows, INPUT, WEIGHTS, self._joined(WEIGHTS), self._joined(BIASES))

    def _short(self, value: SSAValue) -> SSAValue:
        """Integers of i32 limited to 16 bits."""
        return self._node.emit(ClipOp, value, number(self._node, -32768), number(self._node, 32767))

    def _times(self, left: SSAValue, right: SSAValue, bits: int) -> SSAValue:
        """A product divided by 2^bits, with halves rounded away from zero."""
        node = self._node
        twice = node.emit(MulOp, left, node.emit(AddOp, right, right))
        half, shift = (node.constant(np.array(item, np.int32), node.name) for item in (1 << 30, 31 + bits))
        return node.emit(IntegerRescaleOp, twice, half, shift, to=i32, rounding="twice")

    def step(self, sums: SSAValue, hidden: SSAValue, cell: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The next hidden value and cell."""
        node, (batch, width) = self._node, shape_of(cell)
        added = self._product(hidden, OUTPUT_STATE, RECURRENT, self._recurrent, self._none)
        total, gates = self._short(node.emit(AddOp, sums, added)), dict[int, SSAValue]()
        for position, gate in enumerate(self._gates):
            part = node.emit(SliceOp, total, starts=[0, position * width], ends=[batch, (position + 1) * width])
            gates[gate] = sigmoid_form(node, part, 3, 0, is_tanh=gate == 2)
        taken = gates[0] if 0 in gates else node.emit(SubOp, number(node, 32767), gates[1])
        kept = self._times(gates[1], node.cast(cell, i32), UNIT_BITS)
        new = self._times(taken, gates[2], 2 * UNIT_BITS + self._power)
        state = self._short(node.emit(AddOp, kept, new))
        if self._clip:
            state = node.emit(ClipOp, state, number(node, -self._clip), number(node, self._clip))
        shown = sigmoid_form(node, state, *self._to_tanh(), is_tanh=True)
        scale, out = np.float32(2.0 ** (-2 * UNIT_BITS) / node.scale(node.output())), node.output()
        operands = (
            node.constant(item[0], f"{node.name}.hidden.{role}")
            for item, role in zip(quantized_multipliers(np.array([float(scale)])), ("multiplier", "shift"), strict=True)
        )
        product = node.emit(MulOp, gates[3], shown)
        found = node.emit(IntegerRescaleOp, product, *operands, to=node.type_of(out), rounding="twice")
        return node.stored(found), node.cast(state, ELEMENT_TYPES["int16"])

    def _to_tanh(self) -> tuple[int, int]:
        """The multiplier and the shift from cells to positions in the table of hyperbolic tangents."""
        left = GATE_BITS + self._power
        return (3 << left, 0) if left >= 0 else (3, -left)
