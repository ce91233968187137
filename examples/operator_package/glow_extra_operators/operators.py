"""The operator classes: operands, properties, result types; for elementwise ones also the meaning."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from glow_mlir.dialects.expressions import Tensor, maximum, reduce_sum, sqrt
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise import Unary
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.properties import float_prop, number
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import element_of, shape_of, tensor


@irdl_op_definition
class LogitOp(Unary):
    """
    log(x / (1 - x)), with x limited to [`epsilon`, 1 - `epsilon`] (Glow's Logit).

    ```mlir
    %y = glow_high.logit %x {epsilon = 0.001} : tensor<4x8xf32>
    ```
    """

    name = "glow_high.logit"

    input = operand_def(FLOATS)
    epsilon = float_prop(1e-6)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        epsilon = number(self.epsilon)
        x = b.clamp(x, epsilon, 1.0 - epsilon)
        return b.unary("log", x / (1.0 - x))


@irdl_op_definition
class BiasGeluOp(HighOp):
    """
    gelu(`input` + `bias`), with one bias for each index of the last axis (onnxruntime's BiasGelu).

    ```mlir
    %y = glow_high.bias_gelu %x, %bias : tensor<2x8x3072xf32>
    ```
    """

    name = "glow_high.bias_gelu"
    NOTATION: ClassVar = "input[..., c], bias[c] -> result[..., c]"

    input = operand_def(FLOATS.from_rank(1))
    bias = operand_def(FLOATS.of_rank(1))
    result = result_def(TENSOR)


@irdl_op_definition
class CosineSimilarityOp(Expressed):
    """
    The cosine of the angle between rows: their product, divided by their lengths and, for tiny ones, `epsilon`.

    ```mlir
    %c = glow_high.cosine_similarity %x, %y : tensor<32xf32>
    ```
    """

    name = "glow_high.cosine_similarity"
    NOTATION: ClassVar = "x[..., j], y[..., j] -> cosine[...]"

    x = operand_def(FLOATS)
    y = operand_def(FLOATS)
    epsilon = float_prop(1e-8)
    result = result_def(TENSOR)

    def expression(self, *operands: Tensor) -> Tensor:
        x, y = operands
        squares = reduce_sum(x * x, "j") * reduce_sum(y * y, "j")
        return reduce_sum(x * y, "j") / maximum(sqrt(squares), number(self.epsilon))


@irdl_op_definition
class PairwiseDotProductOp(HighOp):
    """
    The dot products of all pairs of rows i < j, in the order (0, 1), (0, 2), … (Glow's BatchedPairwiseDotProduct).

    `input` is [B, N, D] in f32 or f64, the result [B, N·(N - 1) / 2].

    ```mlir
    %y = glow_high.pairwise_dot_product %x : tensor<32x351xf32>
    ```
    """

    name = "glow_high.pairwise_dot_product"
    NOTATION: ClassVar = "input[n, *] -> result[n, *]"

    input = operand_def(FLOATS.of_rank(3))
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, element = shape_of(self.input), element_of(self.input)
        batch, rows, _ = shape
        return (tensor((batch, rows * (rows - 1) // 2), element),)
