"""
Semantics of matrix products, Einstein summation and determinants: f64 accumulation, rounded once; integers exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.einsum import EinsumOp
from glow_mlir.dialects.glow_high.linear import DetOp, FullyConnectedOp, GroupedMatMulOp, MatMulOp, MatrixProduct
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.quant import zero_point_of
from glow_mlir.interpreter.indexing import from_front
from glow_mlir.ir.registry import semantics
from glow_mlir.support.dtypes import is_float_dtype


def wide(array: np.ndarray) -> np.ndarray:
    """The accumulation type: f64 for floats, the type itself for integers, which wrap."""
    return array.astype(np.float64) if is_float_dtype(array.dtype) else array


def factors(signature: ProductSignature, *arrays: np.ndarray) -> list[np.ndarray]:
    """
    Convert operands of a product to the accumulation type: f64 for floats, the accumulator type for integers.

    Zero points of quantized values are subtracted.
    """
    accumulator = numpy_dtype(signature.accumulator)
    if is_float_dtype(accumulator):
        return [array.astype(np.float64) for array in arrays]
    zero_points = zero_point_of(signature.left), zero_point_of(signature.right)
    return [array.astype(accumulator) - zero for array, zero in zip(arrays, zero_points, strict=True)]


@semantics(MatMulOp)
def matmul(op: MatrixProduct, left: np.ndarray, right: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """The batched product plus the bias."""
    a = np.swapaxes(left, -1, -2) if flag(op.transpose_left) else left
    b = np.swapaxes(right, -1, -2) if flag(op.transpose_right) else right
    signature = ProductSignature.of(op.left, op.right, op.bias, op.to)
    product = np.matmul(*factors(signature, a, b))
    if bias is not None:
        product = product + wide(bias)
    return product.astype(numpy_dtype(signature.output))


@semantics(FullyConnectedOp)
def fully_connected(op: FullyConnectedOp, x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The product plus the bias."""
    signature = ProductSignature.of(op.input, op.weights, op.bias, op.to)
    product = np.matmul(*factors(signature, x, weights))
    return (product + wide(bias)).astype(numpy_dtype(signature.output))


@semantics(GroupedMatMulOp)
def grouped_matmul(
    op: GroupedMatMulOp, x: np.ndarray, weights: np.ndarray, index: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Multiply the rows of each group by their matrix, and add its bias."""
    signature = ProductSignature.of(op.input, op.weights, op.bias, op.to)
    chosen = from_front(op, index, len(weights))
    matrices = np.swapaxes(weights, 1, 2) if flag(op.transpose_weights) else weights
    result = np.zeros((len(x), matrices.shape[2]), numpy_dtype(signature.output))
    for number in np.unique(chosen):
        rows = chosen == number
        product = np.matmul(*factors(signature, x[rows], matrices[number]))
        result[rows] = product if bias is None else product + wide(bias[number])
    return result


@semantics(DetOp)
def det(op: DetOp, x: np.ndarray) -> np.ndarray:
    """The determinant of each matrix."""
    return np.asarray(np.linalg.det(wide(x)), x.dtype)


@semantics(EinsumOp)
def einsum(op: EinsumOp, terms: Sequence[np.ndarray]) -> np.ndarray:
    """Numpy has the same equation syntax."""
    return np.asarray(np.einsum(text(op.equation), *map(wide, terms), optimize=True)).astype(terms[0].dtype)
