"""The gradient of resizing: each element gets the cotangents of the positions it contributes to, by weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, size_along, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.interpreter.resize import AxisSampling, samplings
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient
from glow_mlir.support.symbols import Size, product_of


@gradient(ResizeOp)
def resize(op: ResizeOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Sums if elements are repeated, otherwise a product with the weights along each axis."""

    def contribution() -> SSAValue:
        value, repeated, given = cotangent, dict[int, int](), sizes_of(op.input)
        for sampling in samplings(op):
            (size,) = static((given[sampling.axis],))
            if text(op.mode) == "nearest" and _is_repeated(sampling, size):
                repeated[sampling.axis] = len(sampling.indices) // size
            else:
                value = _along_axis(value, _weights(sampling, size, value), sampling.axis, emit)
        return _summed(value, repeated, emit) if repeated else value

    return {"input": contribution}


def _is_repeated(sampling: AxisSampling, size: int) -> bool:
    """Whether all elements are repeated equally often, in order."""
    positions = len(sampling.indices)
    if positions % size or sampling.outside.any():
        return False
    return np.array_equal(sampling.indices[:, 0], np.repeat(np.arange(size), positions // size))


def _summed(value: SSAValue, repeated: dict[int, int], emit: Emitter) -> SSAValue:
    """The sums of neighbours along axes; `repeated` maps axes to the number of neighbours."""
    split: list[Size] = []
    axes: list[int] = []
    shape = sizes_of(value)
    for axis, size in enumerate(shape):
        if axis not in repeated:
            split.append(size)
            continue
        axes.append(len(split) + 1)
        split.extend((size_along(value, axis) // repeated[axis], repeated[axis]))
    return emit(ReduceSumOp, emit(ReshapeOp, value, shape=split), axes=axes, keepdims=False)


def _weights(sampling: AxisSampling, size: int, like: SSAValue) -> np.ndarray:
    """[elements, positions]: the weight of each element at each position; outside elements are left out."""
    matrix = np.zeros((size, len(sampling.indices)))
    positions = np.broadcast_to(np.arange(len(sampling.indices))[:, None], sampling.indices.shape)
    np.add.at(matrix, (sampling.indices, positions), np.where(sampling.outside[:, None], 0.0, sampling.weights))
    return matrix.astype(numpy_dtype(element_of(like)))


def _along_axis(value: SSAValue, weights: np.ndarray, axis: int, emit: Emitter) -> SSAValue:
    """The product of weights with each vector along an axis."""
    shape = sizes_of(value)
    resized = (*shape[:axis], len(weights), *shape[axis + 1 :])
    matrix = emit.constant(weights, "weights")
    if axis == len(shape) - 1:
        rows = emit(ReshapeOp, value, shape=(product_of(shape[:axis]), shape[axis]))
        product = emit(MatMulOp, rows, matrix, transpose_right=True)
    else:
        batches = emit(ReshapeOp, value, shape=_batches(shape, axis))
        product = emit(MatMulOp, matrix, batches)
    return emit(ReshapeOp, product, shape=resized)


def _batches(shape: Sequence[Size], axis: int) -> tuple[Size, Size, Size]:
    """The total sizes of the axes before one, of that axis, and of those after it."""
    return product_of(shape[:axis]), shape[axis], product_of(shape[axis + 1 :])
