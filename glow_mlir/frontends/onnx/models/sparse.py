"""Initializers by name, dense or sparse: a sparse one lists its nonzero elements and their positions."""

from __future__ import annotations

import math

import numpy as np
import onnx

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.onnx.models.tensors import Tensors
from glow_mlir.frontends.onnx.models.types import element_of_onnx

Initializer = onnx.TensorProto | onnx.SparseTensorProto

MAX_DENSE = 1 << 31
"""The maximum number of elements of a sparse tensor, which is converted to its dense form."""


def initializers_of(graph: onnx.GraphProto) -> dict[str, Initializer]:
    """The initializers of a graph by name; the name of a sparse one is that of its values."""
    dense: dict[str, Initializer] = {tensor.name: tensor for tensor in graph.initializer}
    return dense | {tensor.values.name: tensor for tensor in graph.sparse_initializer}


def dense_array(proto: onnx.SparseTensorProto, tensors: Tensors, what: str) -> np.ndarray:
    """
    The dense form of a sparse tensor.

    Its indices are [elements], into the flattened tensor, or [elements, axes]. Raises `ModelError` about `what` for
    indices that do not fit values or shape, and `UnsupportedError` for more than `MAX_DENSE` elements and for
    unsupported element types.
    """
    element_of_onnx(proto.values.data_type, what)
    values, indices = (
        tensors.array(proto.values, f"values of {what}"),
        tensors.array(proto.indices, f"indices of {what}"),
    )
    shape = tuple(proto.dims)
    if math.prod(shape) > MAX_DENSE:
        hint = f"its dense form may have {MAX_DENSE} elements at most"
        raise UnsupportedError(f"{what} is sparse, and of the shape {list(shape)}", hint=hint)
    forms = ((len(values),), (len(values), len(shape)))
    is_inside = indices.shape in forms and bool(np.all((indices >= 0) & (indices < _limits(indices, shape))))
    if values.ndim != 1 or min(shape, default=0) < 0 or not is_inside:
        raise ModelError(f"{what} is sparse, but its indices are invalid", hint="the model is damaged, export it again")
    dense = np.zeros(shape, values.dtype)
    dense[np.unravel_index(indices, shape) if indices.ndim == 1 else tuple(indices.T)] = values
    return dense


def _limits(indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The exclusive upper bounds of the indices."""
    return np.array(math.prod(shape) if indices.ndim == 1 else shape, np.int64)
