"""Sizes as numbers that other operators compute with: what shapes are where a model is called."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, result_def

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import sizes, sizes_prop
from glow_mlir.dialects.shapes import tensor


@irdl_op_definition
class ShapeOp(HighOp):
    """
    The `sizes` as a vector of i64 (ONNX Shape), which are known at run time only.

    ```mlir
    %0 = glow_high.shape {sizes = #glow.sizes<[batch, 4], batch = 1 to 8>} : tensor<2xi64>
    ```
    """

    name = "glow_high.shape"

    sizes = sizes_prop()
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor((len(sizes(self.sizes)),), i64),)
