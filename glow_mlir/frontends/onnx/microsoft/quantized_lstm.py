"""onnxruntime's DynamicQuantizeLSTM: an LSTM with quantized products, unrolled over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activations import SigmoidOp, TanhOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import part_of
from glow_mlir.frontends.onnx.node import ONNXRUNTIME, Node
from glow_mlir.frontends.onnx.operators.quantization import dynamic_quantized, integer_product
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.dataclass import dataclass

DEFAULT_FUNCTIONS = ("sigmoid", "tanh", "tanh")
"""Activation functions of the gates, the new cell state, and the hidden state."""

AXES = {
    0: (3, "[steps, batch, elements]"),
    1: (3, "[directions, elements, 4 * hidden]"),
    2: (3, "[directions, hidden, 4 * hidden]"),
    3: (2, "[directions, 8 * hidden]"),
    5: (3, "[directions, batch, hidden]"),
    6: (3, "[directions, batch, hidden]"),
}
"""Position → the operand's rank, and a description of its axes."""

REVERSED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Direction → whether each recurrence runs backward."""


@onnx_operator("DynamicQuantizeLSTM", domain=ONNXRUNTIME)
def dynamic_quantize_lstm(node: Node) -> Sequence[SSAValue]:
    """Quantize input and hidden state to u8 by their ranges: the input for all steps at once, the state each step."""
    direction = node.text("direction", "forward")
    if direction not in REVERSED:
        raise ModelError(f"{node.kind}: direction '{direction}' does not exist", node=node.name)
    _check_plain(node)
    found = [_Recurrence(node, number).run(is_reversed) for number, is_reversed in enumerate(REVERSED[direction])]
    steps = [node.emit(ConcatOp, [hidden[step] for hidden, *_ in found], axis=0) for step in range(node.shape(0)[0])]
    every = node.emit(ConcatOp, [node.emit(ReshapeOp, step, shape=(1, *shape_of(step))) for step in steps], axis=0)
    last_hidden = node.emit(ConcatOp, [hidden for _, hidden, _ in found], axis=0)
    return [every, last_hidden, node.emit(ConcatOp, [cells for *_, cells in found], axis=0)]


def _check_plain(node: Node) -> None:
    """Raise `UnsupportedError` for unsupported attributes and operands, `ModelError` for operands of wrong rank."""
    for position, (rank, axes) in AXES.items():
        node.check_rank(position, (rank,), f"it is {axes}")
    if not all(node.shape()):
        raise node.unsupported(f"an input of the shape {node.shape()} has no range of numbers")
    functions = tuple(word.lower() for word in node.texts("activations", ()))
    if functions and functions != DEFAULT_FUNCTIONS * (len(functions) // 3):
        raise node.unsupported("other gate functions than Sigmoid, Tanh, Tanh are not supported")
    further = {"sequence_lens": node.optional(4), "P": node.optional(7)}
    further |= {"clip": node.float("clip", 0.0) or None, "input_forget": node.flag("input_forget") or None}
    if given := [name for name, value in further.items() if value is not None]:
        raise node.unsupported(f"{given[0]} is not supported")


@dataclass(frozen=True)
class _Recurrence:
    """One direction of the layer."""

    node: Node
    number: int

    def run(self, is_reversed: bool) -> tuple[list[SSAValue], SSAValue, SSAValue]:
        """The hidden states [1, batch, hidden] in order of the input, then the last hidden and the last cell state."""
        node = self.node
        steps, batch, width = node.shape(0)
        hidden_size = node.shape(2)[1]
        flat = node.emit(ReshapeOp, node.input(0), shape=(steps * batch, width))
        inputs = node.emit(ReshapeOp, self._product(flat, 1, 8), shape=(steps, batch, 4 * hidden_size))
        hidden, cell = (self._initial(position, (batch, hidden_size)) for position in (5, 6))
        bias, found = self._bias(hidden_size), dict[int, SSAValue]()
        for step in reversed(range(steps)) if is_reversed else range(steps):
            sums = node.emit(AddOp, part_of(node, inputs, step), self._product(hidden, 2, 10))
            hidden, cell = self._step(sums if bias is None else node.emit(AddOp, sums, bias), cell, hidden_size)
            found[step] = node.emit(ReshapeOp, hidden, shape=(1, batch, hidden_size))
        hidden, cell = (node.emit(ReshapeOp, value, shape=(1, batch, hidden_size)) for value in (hidden, cell))
        return [found[step] for step in range(steps)], hidden, cell

    def _product(self, rows: SSAValue, weights: int, scale: int) -> SSAValue:
        """The product of dynamically quantized rows and weights; `scale` is followed by the zero point's position."""
        node = self.node
        quantized, rows_scale, rows_zero = dynamic_quantized(node, rows)
        matrix, weights_scale, zero = (part_of(node, node.input(at), self.number) for at in (weights, scale, scale + 1))
        sums = integer_product(node, quantized, matrix, rows_zero, zero)
        return node.emit(DequantizeOp, sums, node.emit(MulOp, rows_scale, weights_scale))

    def _step(self, sums: SSAValue, cell: SSAValue, size: int) -> tuple[SSAValue, SSAValue]:
        """Hidden and cell state after a step, from the gates' accumulators: input, output, forget, new cell."""
        node = self.node
        gates = node.emit(ReshapeOp, sums, shape=(shape_of(sums)[0], 4, size))
        given, output, forget, new = (part_of(node, gates, number, axis=1) for number in range(4))
        kept = node.emit(MulOp, node.emit(SigmoidOp, forget), cell)
        cell = node.emit(AddOp, kept, node.emit(MulOp, node.emit(SigmoidOp, given), node.emit(TanhOp, new)))
        return node.emit(MulOp, node.emit(SigmoidOp, output), node.emit(TanhOp, cell)), cell

    def _initial(self, position: int, shape: tuple[int, int]) -> SSAValue:
        """The state before the first step; zeros if the operand is absent."""
        value = self.node.optional(position)
        if value is None:
            return self.node.constant(np.zeros(shape, np.float32))
        return part_of(self.node, value, self.number)

    def _bias(self, size: int) -> SSAValue | None:
        """The sum of the biases of input and recurrence."""
        value = self.node.optional(3)
        if value is None:
            return None
        halves = self.node.emit(ReshapeOp, part_of(self.node, value, self.number), shape=(2, 4 * size))
        return self.node.emit(AddOp, *(part_of(self.node, halves, number) for number in range(2)))
