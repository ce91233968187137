"""
Recurrences: the sequential part of a recurrent layer, for one direction of one layer.

All products with the layer's input are computed before, for all steps at once. The gates of a step are scalar code
(`cell` and similar methods), so that kernels and the interpreter compute the same. Training graphs use the forms that
save the arguments of the gates, since recomputing them from the states would repeat all products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.generic_form import is_half
from glow_mlir.dialects.glow_high.base import SEGMENTS
from glow_mlir.dialects.glow_high.gated import Gate, Gated
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.operand_types import FLOATS, LENGTHS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import (
    element_of,
    require,
    require_equal,
    shape_of,
    size_along,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


class Recurrence(Gated):
    """
    The base of recurrences: gates, gate functions, direction.

    The arguments of all gate functions are limited to ±`clip`, except for that of a cell's output. With `reverse`,
    steps go from the last to the first.
    """

    NOTATION: ClassVar[str] = (
        "input[*t, n, *g], initial_h[n, *], initial_c[n, *], sequence_lens[n]"
        " -> states[*t, n, *h], last_h[n, *], last_c[n, *], sums[*t, n, *], cells[*t, n, *]"
    )

    GATES: ClassVar[int]
    """The number of gates of the network: the width of the input divided by that of the state."""
    FUNCTIONS: ClassVar[tuple[str, ...]]
    """Names of the gate functions by default."""
    UNCLIPPED: ClassVar[tuple[int, ...]] = ()
    """Positions of the gate functions that `clip` does not apply to."""
    STATES: ClassVar[int] = 1
    """The number of states that a step passes to the next."""

    reverse = flag_prop()

    def stated_batch(self) -> int:
        return shape_of(self.inputs()[0])[1]

    def arithmetic(self) -> Arithmetic:
        # Elements of the results are the states: of all steps, and the last ones once more.
        outputs = self.outputs()[: 1 + self.STATES]
        return Arithmetic(sum(map(size_of, outputs)) * self.GATES * shape_of(outputs[0])[-1])

    def functions(self) -> tuple[Gate, ...]:
        """The gate functions, in order; raises where names or parameters do not fit."""
        return self.gate_functions(self.FUNCTIONS, self.UNCLIPPED)


def recurrence_types(
    op: Recurrence, inputs: SSAValue, weights: SSAValue, states: Sequence[SSAValue], lengths: SSAValue | None
) -> tuple[TensorType[Attribute], ...]:
    """The types of all states and of the last ones; raises where operands do not fit."""
    require_one_element(op, lengths)
    op.functions()
    element, width = element_of(inputs), size_along(inputs, -1)
    steps, batch, _ = sizes_of(inputs)
    hidden = width // op.GATES
    require(shape_of(weights) == (hidden, width) and hidden * op.GATES == width, _misfit("weights", (hidden, width)))
    for state in states:
        require_equal(sizes_of(state), (batch, hidden), _misfit("an initial state", (batch, hidden)))
    if lengths is not None:
        require_equal(sizes_of(lengths), (batch,), f"sequence_lens must have shape ({batch},)")
    last = tensor((batch, hidden), element)
    return (tensor((steps, batch, hidden), element), *(last for _ in states))


def require_one_element(op: Gated, lengths: SSAValue | None) -> None:
    """Raise unless all operands of a recurrence or layer except `lengths` have the same element type."""
    first, *others = (value for value in op.inputs() if value is not lengths)
    for value in others:
        is_same = element_of(value) == element_of(first)
        require(is_same, f"an operand has elements of {element_of(value)}, the input of {element_of(first)}")


def kept_type(values: SSAValue, width: Size) -> TensorType[Attribute]:
    """The type of values saved for all steps, in the type of the computation: [steps, batch, width]."""
    element = element_of(values)
    return tensor((*sizes_of(values)[:2], width), f32 if is_half(element) else element)


def _misfit(what: str, shape: Sizes) -> str:
    return f"{what} must have shape {shape}"


class LstmSteps(Recurrence):
    """
    The steps of a long short-term memory.

    `input` [steps, batch, 4·hidden] holds the contributions of input and biases to the gates input, output, forget,
    cell; `weights` [hidden, 4·hidden] multiply the state. `peepholes` [3·hidden] are those of input, output, forget.
    Steps from `sequence_lens` on keep the states, and their results are 0. With `input_forget`, the forget gate is one
    minus the input gate.
    """

    GATES: ClassVar[int] = 4
    FUNCTIONS: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "tanh")
    UNCLIPPED: ClassVar[tuple[int, ...]] = (2,)
    STATES: ClassVar[int] = 2

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS)
    initial_h = operand_def(FLOATS)
    initial_c = operand_def(FLOATS)
    peepholes = opt_operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))
    input_forget = flag_prop()

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        if self.peepholes is not None:
            wanted = (3 * shape_of(self.weights)[0],)
            require(shape_of(self.peepholes) == wanted, _misfit("peepholes", wanted))
        states = (self.initial_h, self.initial_c)
        return recurrence_types(self, self.input, self.weights, states, self.sequence_lens)

    def cell(
        self, b: ScalarBuilder, gates: Sequence[Scalar], c: Scalar, peepholes: Sequence[Scalar] = ()
    ) -> tuple[Scalar, Scalar]:
        """The new state and cell, from the arguments of the four gates, the previous cell and its peepholes."""
        gate, candidate, output = self.functions()
        at_input, at_output, at_forget, at_cell = gates
        if peepholes:
            at_input, at_forget = at_input + peepholes[0] * c, at_forget + peepholes[2] * c
        enters = gate(b, at_input)
        stays = 1.0 - enters if flag(self.input_forget) else gate(b, at_forget)
        new = stays * c + enters * candidate(b, at_cell)
        leaves = gate(b, at_output + peepholes[1] * new if peepholes else at_output)
        return leaves * output(b, new), new


@op_definition
class LstmRecurrenceOp(LstmSteps):
    """
    The steps of a long short-term memory (part of ONNX LSTM).

    ```mlir
    %y, %h, %c = glow_high.lstm_recurrence %gates, %weights, %h0, %c0
        : tensor<7x1x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>
    ```
    """

    name = "glow_high.lstm_recurrence"

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)
    last_c = result_def(TENSOR)


@op_definition
class LstmRecurrenceWithSumsOp(LstmSteps):
    """
    The steps of a long short-term memory, and the values that their gradient needs.

    `sums` [steps, batch, 4·hidden] are the arguments of the gates, without peepholes; `cells` [steps, batch, hidden]
    are the cells before each step. Both are 0 in steps beyond the end of a sequence.
    """

    name = "glow_high.lstm_recurrence_with_sums"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("sums", "input"),)

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)
    last_c = result_def(TENSOR)
    sums = result_def(TENSOR)
    cells = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        steps = LstmSteps.infer_types(self)
        width = size_along(self.input, -1)
        return *steps, kept_type(self.input, width), kept_type(self.input, width // self.GATES)


class GruSteps(Recurrence):
    """
    The steps of a gated recurrent unit.

    `input` [steps, batch, 3·hidden] holds the contributions of input and biases to update, reset and candidate;
    `weights` [hidden, 3·hidden] multiply the state or, for the candidate, the state times the reset gate. With `bias`
    [hidden], the reset gate multiplies the product with the state plus the bias instead (ONNX's `linear_before_reset`).
    """

    GATES: ClassVar[int] = 3
    FUNCTIONS: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh")

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS)
    initial_h = operand_def(FLOATS)
    bias = opt_operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        if self.bias is not None:
            wanted = shape_of(self.weights)[:1]
            require(shape_of(self.bias) == wanted, _misfit("bias", wanted))
        return recurrence_types(self, self.input, self.weights, (self.initial_h,), self.sequence_lens)

    def gate(self, b: ScalarBuilder, total: Scalar) -> Scalar:
        """The update or reset gate from its sum."""
        return self.functions()[0](b, total)

    def blend(self, b: ScalarBuilder, update: Scalar, total: Scalar, h: Scalar) -> Scalar:
        """The new state from the update gate, the sum of the candidate and the state before."""
        candidate = self.functions()[1](b, total)
        return (1.0 - update) * candidate + update * h


@op_definition
class GruRecurrenceOp(GruSteps):
    """The steps of a gated recurrent unit (part of ONNX GRU)."""

    name = "glow_high.gru_recurrence"

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)


@op_definition
class GruRecurrenceWithSumsOp(GruSteps):
    """
    The steps of a gated recurrent unit, and the values that their gradient needs.

    `sums` [steps, batch, 3·hidden] are the arguments of the gates; for the candidate, with `bias`, the factor that the
    reset gate multiplies. They are 0 in steps beyond the end of a sequence.
    """

    name = "glow_high.gru_recurrence_with_sums"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("sums", "input"),)

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)
    sums = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return *GruSteps.infer_types(self), kept_type(self.input, size_along(self.input, -1))


class RnnSteps(Recurrence):
    """
    The steps of a simple recurrent network.

    `input` [steps, batch, hidden] holds the contributions of input and biases; `weights` [hidden, hidden] multiply the
    state.
    """

    GATES: ClassVar[int] = 1
    FUNCTIONS: ClassVar[tuple[str, ...]] = ("tanh",)

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS)
    initial_h = operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return recurrence_types(self, self.input, self.weights, (self.initial_h,), self.sequence_lens)

    def cell(self, b: ScalarBuilder, total: Scalar) -> Scalar:
        """The new state from its sum."""
        return self.functions()[0](b, total)


@op_definition
class RnnRecurrenceOp(RnnSteps):
    """The steps of a simple recurrent network (part of ONNX RNN)."""

    name = "glow_high.rnn_recurrence"

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)


@op_definition
class RnnRecurrenceWithSumsOp(RnnSteps):
    """
    The steps of a simple recurrent network, and the values that their gradient needs.

    `sums` [steps, batch, hidden] are the arguments of the activation, and 0 in steps beyond the end of a sequence.
    """

    name = "glow_high.rnn_recurrence_with_sums"
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("sums", "input"),)

    states = result_def(TENSOR)
    last_h = result_def(TENSOR)
    sums = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return *RnnSteps.infer_types(self), kept_type(self.input, size_along(self.input, -1))
