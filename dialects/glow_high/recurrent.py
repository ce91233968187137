"""Recurrent layers as ONNX has them: one or two directions, optional states, either layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import SEGMENTS
from glow_mlir.dialects.glow_high.gated import Gated, names_of
from glow_mlir.dialects.glow_high.recurrence import (
    GruRecurrenceOp,
    LstmRecurrenceOp,
    Recurrence,
    RnnRecurrenceOp,
    require_one_element,
)
from glow_mlir.dialects.operand_types import FLOATS, LENGTHS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, floats, text, text_prop
from glow_mlir.dialects.shapes import element_of, require, require_equal, shape_of, sizes_of, tensor
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

DIRECTIONS: dict[str, tuple[bool, ...]] = {
    "forward": (False,),
    "reverse": (True,),
    "bidirectional": (False, True),
}
"""Name of a direction → for each recurrence of the layer, whether it goes backwards."""


class Recurrent(Gated):
    """
    The base of recurrent layers.

    `input` is [steps, batch, width], or [batch, steps, width] with `batch_first`. For each direction, `weights`
    [directions, gates·hidden, width] multiply the input, `recurrence` [directions, gates·hidden, hidden] the state;
    `bias` [directions, 2·gates·hidden] has those of the input, then those of the state. All states come as
    [steps, directions, batch, hidden], the last ones as [directions, batch, hidden]; with `batch_first`, the batch is
    the first axis of these and of the initial states. `activations` lists the gate functions of all directions, with
    their parameters in `alphas` and `betas`; `clip` limits their arguments.
    """

    RECURRENCE: ClassVar[type[Recurrence]]
    """The recurrence of one direction."""

    direction = text_prop("forward")
    batch_first = flag_prop()

    def directions(self) -> tuple[bool, ...]:
        """For each direction, whether it goes backwards."""
        word = text(self.direction)
        require(word in DIRECTIONS, f"direction must be one of {', '.join(DIRECTIONS)}, not '{word}'")
        return DIRECTIONS[word]

    def gate_names(self) -> tuple[str, ...]:
        """The names of the gate functions of all directions; raises where names or parameters do not fit."""
        default = self.RECURRENCE.FUNCTIONS * len(self.directions())
        self.gate_functions(default)
        return names_of(self.activations, default)

    def direction_properties(self, index: int) -> dict[str, Attribute]:
        """The properties of the recurrence of one direction."""
        count = len(self.RECURRENCE.FUNCTIONS)
        chosen = slice(index * count, (index + 1) * count)
        properties: dict[str, Attribute] = {"reverse": to_attribute(self.directions()[index]), "clip": self.clip}
        if self.activations is not None:
            properties["activations"] = ArrayAttr([StringAttr(name) for name in self.gate_names()[chosen]])
        for name, values in (("alphas", self.alphas), ("betas", self.betas)):
            if values is not None:
                properties[name] = to_attribute(floats(values)[chosen])
        return properties

    def access_map(self) -> AccessMap:
        if flag(self.batch_first):
            image, state, states = "[n, *]", "[n, *]", "[n, *]"
        else:
            image, state, states = "[*t, n, *]", "[*d, n, *h]", "[*t, *d, n, *h]"
        return self.accessed(
            f"input{image}, initial_h{state}, initial_c{state}, sequence_lens[n]"
            f" -> states{states}, last_h{state}, last_c{state}"
        )


def layer_types(
    op: Recurrent,
    operands: Sequence[SSAValue],
    bias: SSAValue | None,
    lengths: SSAValue | None,
    initial: Mapping[str, SSAValue | None],
) -> tuple[TensorType[Attribute], ...]:
    """
    The types of all states, and of the last ones of each kind, from input, weights and recurrence; raises for a misfit.

    `initial` has the initial states by name.
    """
    op.gate_names()
    shape, element, directions = sizes_of(operands[0]), element_of(operands[0]), len(op.directions())
    require_one_element(op, lengths)
    batch_first = flag(op.batch_first)
    batch, steps = (shape[0], shape[1]) if batch_first else (shape[1], shape[0])
    hidden = shape_of(operands[2])[-1]
    gates = op.RECURRENCE.GATES * hidden
    require_shape(operands[1], (directions, gates, shape[2]), "weights")
    require_shape(operands[2], (directions, gates, hidden), "recurrence")
    require_shape(bias, (directions, 2 * gates), "bias")
    require_shape(lengths, (batch,), "sequence_lens")
    all_shape = (batch, steps, directions, hidden) if batch_first else (steps, directions, batch, hidden)
    last_shape = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    for name, state in initial.items():
        require_shape(state, last_shape, name)
    return tensor(all_shape, element), *(tensor(last_shape, element) for _ in initial)


def require_shape(value: SSAValue | None, shape: Sizes, what: str) -> None:
    """Raise unless an operand is absent or has that shape."""
    if value is not None:
        require_equal(sizes_of(value), shape, f"{what} must have shape {shape}, not {sizes_of(value)}")


@op_definition
class LstmOp(Recurrent):
    """
    A layer of long short-term memory (ONNX LSTM): gates input, output, forget, cell.

    `peepholes` [directions, 3·hidden] are those of input, output and forget gate.

    ```mlir
    %y, %h, %c = glow_high.lstm %x, %weights, %recurrence, %bias
        : tensor<7x1x1x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>
    ```
    """

    name = "glow_high.lstm"
    RECURRENCE: ClassVar[type[Recurrence]] = LstmRecurrenceOp

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS.of_rank(3))
    recurrence = operand_def(FLOATS.of_rank(3))
    bias = opt_operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))
    initial_h = opt_operand_def(FLOATS)
    initial_c = opt_operand_def(FLOATS)
    peepholes = opt_operand_def(FLOATS)
    input_forget = flag_prop()
    states = result_def(TENSOR)
    last_h = result_def(TENSOR)
    last_c = result_def(TENSOR)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        initial = {"initial_h": self.initial_h, "initial_c": self.initial_c}
        operands = (self.input, self.weights, self.recurrence)
        types = layer_types(self, operands, self.bias, self.sequence_lens, initial)
        directions, _, hidden = shape_of(self.recurrence)
        require_shape(self.peepholes, (directions, 3 * hidden), "peepholes")
        return types

    def direction_properties(self, index: int) -> dict[str, Attribute]:
        """The properties of the recurrence of one direction."""
        return {**Recurrent.direction_properties(self, index), "input_forget": self.input_forget}


@op_definition
class GruOp(Recurrent):
    """
    A layer of gated recurrent units (ONNX GRU): gates update, reset, candidate.

    With `linear_before_reset`, the reset gate multiplies the product with the state instead of the state.
    """

    name = "glow_high.gru"
    RECURRENCE: ClassVar[type[Recurrence]] = GruRecurrenceOp

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS.of_rank(3))
    recurrence = operand_def(FLOATS.of_rank(3))
    bias = opt_operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))
    initial_h = opt_operand_def(FLOATS)
    linear_before_reset = flag_prop()
    states = result_def(TENSOR)
    last_h = result_def(TENSOR)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        operands = (self.input, self.weights, self.recurrence)
        return layer_types(self, operands, self.bias, self.sequence_lens, {"initial_h": self.initial_h})


@op_definition
class RnnOp(Recurrent):
    """A layer of a simple recurrent network (ONNX RNN): the state is its only gate."""

    name = "glow_high.rnn"
    RECURRENCE: ClassVar[type[Recurrence]] = RnnRecurrenceOp

    input = operand_def(FLOATS.of_rank(3))
    weights = operand_def(FLOATS.of_rank(3))
    recurrence = operand_def(FLOATS.of_rank(3))
    bias = opt_operand_def(FLOATS)
    sequence_lens = opt_operand_def(LENGTHS.of_rank(1))
    initial_h = opt_operand_def(FLOATS)
    states = result_def(TENSOR)
    last_h = result_def(TENSOR)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        operands = (self.input, self.weights, self.recurrence)
        return layer_types(self, operands, self.bias, self.sequence_lens, {"initial_h": self.initial_h})
