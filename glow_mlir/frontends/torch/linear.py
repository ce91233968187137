"""PyTorch's matrix products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


@torch_operator("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default")
def product(node: TorchNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The product of matrices, or of a matrix and a vector; of integers as well."""
    return node.cast(numpy_product(node, left, right), node.element)


@torch_operator("addmm.default", "baddbmm.default", "addmv.default")
def add_product(
    node: TorchNode, addend: SSAValue, left: SSAValue, right: SSAValue, *, beta: float = 1, alpha: float = 1
) -> SSAValue:
    """`beta · addend + alpha · left · right`; a fully connected layer where that is a product and a bias."""
    columns = node.sizes[-1]
    is_bias = sizes_of(addend) in ((columns,), (1, columns)) and isinstance(columns, int) and columns != 0
    if alpha == beta == 1 and is_bias and len(node.sizes) == 2:
        return node.emit(FullyConnectedOp, left, right, node.reshaped(addend, (columns,)))
    result = product(node, left, right)
    if alpha != 1:
        result = node.emit(MulOp, result, node.tensor(alpha))
    if beta == 0:
        return result
    if beta != 1:
        addend = node.emit(MulOp, addend, node.tensor(beta))
    return node.emit(AddOp, result, addend)
