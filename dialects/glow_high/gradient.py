"""Gradients as requested by a graph, before the pass `differentiate` replaces them by operators."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, var_operand_def, var_result_def

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.shapes import element_of, require, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class GradientOp(HighOp):
    """
    The derivatives of the sum of all elements of `target` with regard to each of `sources` (ONNX Gradient).

    With a `cotangent`, which has the type of `target`, they are the derivatives of the sum of `cotangent` · `target`:
    the vector-Jacobian product. `target` depends on a source if operators compute it from that source, whatever their
    values are; derivatives with regard to other sources are 0. The pass `differentiate` replaces it.

    ```mlir
    %dx, %dw = glow_high.gradient %loss, none, %x, %w : tensor<8x4xf32>, tensor<4x2xf32>
    ```
    """

    name = "glow_high.gradient"
    NOTATION: ClassVar[str] = "target[*] -> results_[*]"
    HAS_INSTRUCTION: ClassVar[bool] = False

    target = operand_def(FLOATS)
    cotangent = opt_operand_def(FLOATS)
    sources = var_operand_def(TENSOR)
    results_ = var_result_def(TENSOR)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        if self.cotangent is not None:
            require(self.cotangent.type == self.target.type, "the cotangent has another type than the target")
        for source in self.sources:
            require(is_float(element_of(source)), "{} has no derivatives", element_of(source))
        return tuple(tensor(sizes_of(source), element_of(source)) for source in self.sources)


@op_definition
class VariablesOp(HighOp):
    """
    The operands as independent variables: derivatives with regard to them are partial derivatives.

    The same value may be several operands, and one operand may be computed from another. The pass `differentiate`
    replaces the results by the operands.

    ```mlir
    %q, %k = glow_high.variables %x, %x : tensor<8x4xf32>, tensor<8x4xf32>
    ```
    """

    name = "glow_high.variables"
    NOTATION: ClassVar[str] = "values[*] -> variables[*]"
    HAS_INSTRUCTION: ClassVar[bool] = False

    values = var_operand_def(TENSOR)
    variables = var_result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return tuple(tensor(sizes_of(value), element_of(value)) for value in self.values)
