"""PyTorch's matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.einsum import EinsumOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.torch.functions import torch_operator
from glow_mlir.frontends.torch.node import TorchNode


@torch_operator("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default", "_int_mm.default")
def product(node: TorchNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """The product of matrices, or of a matrix and a vector, of floats or integers, also of i8 as i32."""
    return node.cast(numpy_product(node, left, right), node.element)


@torch_operator("addmm.default", "baddbmm.default", "addmv.default")
def add_product(
    node: TorchNode, addend: SSAValue, left: SSAValue, right: SSAValue, *, beta: float = 1, alpha: float = 1
) -> SSAValue:
    """`beta · addend + alpha · left · right`; a fully connected layer if it is a product plus a bias."""
    columns = node.sizes[-1]
    is_bias = sizes_of(addend) in ((columns,), (1, columns)) and isinstance(columns, int) and columns != 0
    if alpha == beta == 1 and is_bias and len(node.sizes) == 2:
        return node.emit(FullyConnectedOp, left, right, node.reshaped(addend, (columns,)))
    element = node.wide if is_float(node.element) else node.element
    result = wide_product(node, left, right)
    if alpha != 1:
        result = node.emit(MulOp, result, node.tensor(alpha, element))
    if beta != 0:
        addend = node.cast(addend, element)
        if beta != 1:
            addend = node.emit(MulOp, addend, node.tensor(beta, element))
        result = node.emit(AddOp, result, addend)
    return node.expanded(node.cast(result, node.element))


def wide_product(node: TorchNode, left: SSAValue, right: SSAValue) -> SSAValue:
    """A product in the element type of its accumulators; products of integers wrap around."""
    if is_float(node.element) and node.element != node.wide:
        return numpy_product(node, left, right, to=node.wide)
    return product(node, left, right)


@torch_operator("addbmm.default")
def add_batch_products(
    node: TorchNode, addend: SSAValue, left: SSAValue, right: SSAValue, *, beta: float = 1, alpha: float = 1
) -> SSAValue:
    """`beta · addend + alpha ·` the sum of a batch of products, as one product whose inner axis includes the batch."""
    batch, rows, inner = sizes_of(left)
    merged = node.reshaped(node.emit(TransposeOp, left, permutation=(1, 0, 2)), (rows, batch * inner))
    columns = node.reshaped(right, (batch * inner, sizes_of(right)[2]))
    return add_product(node, addend, merged, columns, beta=beta, alpha=alpha)


@torch_operator("_trilinear.default")
def trilinear(
    node: TorchNode,
    one: SSAValue,
    two: SSAValue,
    three: SSAValue,
    new_of_one: Sequence[int],
    new_of_two: Sequence[int],
    new_of_three: Sequence[int],
    summed: Sequence[int],
    _: int = 1,
) -> SSAValue:
    """The sum of products of three values, each of which broadcasts along the axes it lacks."""
    count = rank_of(one) + len(new_of_one)
    letters = ascii_lowercase[:count]
    terms = [
        "".join(letters[axis] for axis in range(count) if axis not in new)
        for new in (new_of_one, new_of_two, new_of_three)
    ]
    result = "".join(letter for axis, letter in enumerate(letters) if axis not in summed)
    return node.emit(EinsumOp, [one, two, three], equation=f"{','.join(terms)}->{result}")
