"""ONNX's matrix products and Einsum."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.einsum import Contraction, EinsumOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.agreement import stretched
from glow_mlir.frontends.builder.products import numpy_product
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.ir.registry import onnx_operator


@onnx_operator("MatMul")
def matmul(node: Node) -> SSAValue:
    """Numpy's matmul; the result has the operand's type, and narrow integers wrap around."""
    result = numpy_product(node, node.input(0), node.input(1))
    return node.cast(result, node.element())


@onnx_operator("Gemm")
def gemm_limited(node: Node) -> SSAValue:
    """The form up to opset 6: the third operand has the shape of the result, unless `broadcast`."""
    result = gemm(node)
    if not node.flag("broadcast") and node.sizes(2) != sizes_of(result):
        hint = "up to opset 6, the attribute broadcast allows that"
        reason = f"Gemm: {node.sizes(2)} is not {sizes_of(result)}"
        raise ModelError(reason, node=node.name, hint=hint)
    return result


@onnx_operator("Gemm", since=7)
def gemm(node: Node) -> SSAValue:
    """A fully connected layer if the third operand is a bias vector, else a product, scalings and a sum."""
    left, right, addend = node.input(0), node.input(1), node.optional(2)
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    if node.flag("transA"):
        left = node.emit(TransposeOp, left, permutation=(1, 0))
    if node.flag("transB"):
        right = node.emit(TransposeOp, right, permutation=(1, 0))
    columns = sizes_of(right)[1]
    is_vector = addend is not None and sizes_of(addend) in ((columns,), (1, columns)) and isinstance(columns, int)
    if addend is not None and alpha == beta == 1.0 and is_vector:
        return node.emit(FullyConnectedOp, left, right, node.emit(ReshapeOp, addend, shape=(columns,)))
    result = node.emit(MatMulOp, left, right)
    if alpha != 1.0:
        result = node.emit(MulOp, result, node.constant(alpha, like=result))
    if addend is None:
        return result
    if beta != 1.0:
        addend = node.emit(MulOp, addend, node.constant(beta, like=addend))
    return node.emit(AddOp, result, stretched(node, addend, sizes_of(result)))


@onnx_operator("Einsum", since=12)
def einsum(node: Node) -> SSAValue:
    """Sums of products over labelled axes; a size of 1 broadcasts to the larger sizes of its label."""
    terms, equation = node.present(), node.text("equation").replace(" ", "")
    contraction = Contraction.of(equation, [rank_of(term) for term in terms])
    labelled = [
        list(zip(labels, sizes_of(term), strict=True)) for labels, term in zip(contraction.terms, terms, strict=True)
    ]
    longer = {label for axes in labelled for label, size in axes if label.isalpha() and size != 1}
    kept = [
        [
            axis
            for axis in axes
            if axis[1] != 1 or axis[0] not in longer or contraction.terms[position].count(axis[0]) > 1
        ]
        for position, axes in enumerate(labelled)
    ]
    if kept != labelled:
        terms = [
            term if axes == rest else node.emit(ReshapeOp, term, shape=[size for _, size in rest])
            for term, axes, rest in zip(terms, labelled, kept, strict=True)
        ]
        written = ",".join(_term(label for label, _ in axes) for axes in kept)
        equation = f"{written}->{_term(contraction.result)}"
    return node.emit(EinsumOp, terms, equation=equation)


def _term(labels: Iterable[str]) -> str:
    """Axis labels as a term of an equation."""
    return re.sub("[0-9]+", "...", "".join(labels))
