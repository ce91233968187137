"""Values that an earlier call of another function has computed, and saved."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import var_operand_def, var_result_def

from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.shapes import element_of, require, sizes_of, tensor
from glow_mlir.support.op_definition import op_definition


@op_definition
class SavedOp(HighOp):
    """
    The values of `computed`, which are known: they are `values`.

    A function that computes gradients of what another one has computed has the operators of that as far as gradients
    ask for them. The pass `differentiate` goes back through `computed`, and then has `values` in the place of them, so
    that nothing is computed twice.

    ```mlir
    %y, %h, %c, %sums, %cells = glow_high.lstm_recurrence_with_sums %gates, %weights, %h0, %c0
    %states, %known = glow_high.saved [%y, %sums], [%saved_y, %saved_sums]
        : tensor<7x1x64xf32>, tensor<7x1x256xf32>
    ```
    """

    name = "glow_high.saved"
    HAS_INSTRUCTION: ClassVar[bool] = False

    computed = var_operand_def(TENSOR)
    values = var_operand_def(TENSOR)
    results_ = var_result_def(TENSOR)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        require(len(self.computed) == len(self.values), "a value is missing for what is computed, or one too many")
        for one, other in zip(self.computed, self.values, strict=True):
            require(one.type == other.type, "what is saved has another type than what is computed")
        return tuple(tensor(sizes_of(value), element_of(value)) for value in self.values)
