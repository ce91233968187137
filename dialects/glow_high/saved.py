"""Values that an earlier call of another function has computed and saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import var_operand_def, var_result_def

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.shapes import element_of, require, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class SavedOp(HighOp):
    """
    Values with saved copies: the operands are values that the function computes, followed by the same values as an
    earlier call saved them, in the same order.

    A function that computes gradients of another function repeats the operators of that function that gradients depend
    on. The pass `differentiate` derives gradients through the computed values, and then replaces these by the saved
    ones, so that nothing is computed twice.

    ```mlir
    %y, %h, %c, %sums, %cells = glow_high.lstm_recurrence_with_sums %gates, %weights, %h0, %c0
    %states, %known = glow_high.saved %y, %sums, %saved_y, %saved_sums
        : tensor<7x1x64xf32>, tensor<7x1x256xf32>
    ```
    """

    name = "glow_high.saved"
    NOTATION: ClassVar[str] = "operands_[*] -> results_[*]"
    HAS_INSTRUCTION: ClassVar[bool] = False

    operands_ = var_operand_def(TENSOR)
    results_ = var_result_def(TENSOR)

    @property
    def computed(self) -> Sequence[SSAValue]:
        """The values that the function computes."""
        return self.operands_[: len(self.operands_) // 2]

    @property
    def values(self) -> Sequence[SSAValue]:
        """The saved values."""
        return self.operands_[len(self.operands_) // 2 :]

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        require(len(self.computed) == len(self.values), "a value is missing for what is computed")
        for one, other in zip(self.computed, self.values, strict=True):
            require(one.type == other.type, "what was saved has another type than what is computed")
        return tuple(tensor(sizes_of(value), element_of(value)) for value in self.values)
