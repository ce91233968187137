"""Arrays over index spaces: operands indexed by their maps, and elements in the types of bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from glow_mlir.support.dtypes import signless_dtype


def index_array(array: np.ndarray, affine: AffineMap) -> np.ndarray:
    """Broadcast `array` to the index space of `affine`, with axes reordered and inserted."""
    index: list[Any] = []
    axes: list[int] = []
    for expression in affine.results:
        if isinstance(expression, AffineConstantExpr):
            index.append(expression.value)
        else:
            assert isinstance(expression, AffineDimExpr)
            index.append(slice(None))
            axes.append(expression.position)
    order = sorted(range(len(axes)), key=lambda position: axes[position])
    selected = array[(*index, ...)].transpose(order)  # The ellipsis keeps a single element an array to write to.
    present = set(axes)
    return selected[(*(slice(None) if d in present else np.newaxis for d in range(affine.num_dims)), ...)]


def signless_array(array: np.ndarray) -> np.ndarray:
    """View integers as signless arrays, as bodies compute on them."""
    return array.view(signless_dtype(array.dtype))


def as_stored(array: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast a body's result to a shape, viewed as elements of a type of equal width."""
    array = np.broadcast_to(array, shape)
    return np.ascontiguousarray(array).reshape(shape).view(dtype) if array.dtype != dtype else array
