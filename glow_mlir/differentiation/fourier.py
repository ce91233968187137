"""The gradient of Fourier transforms: a transform in the other direction."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import PadOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, rank_of, size_along, sizes_of
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.differentiation.data_movement import part_along
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(DftOp)
def dft(op: DftOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    The transform with conjugate factors, of the elements that were used; others have no influence.

    In a half spectrum, each frequency that is not its own mirror image counts twice.
    """

    def contribution() -> SSAValue:
        value = _other_way(op, cotangent, emit)
        last = rank_of(value) - 1
        value = part_along(value, last, 0, sizes_of(op.input)[last], emit)
        return _resized(value, op.along(), size_along(op.input, op.along()), emit)

    return {"input": contribution}


def _other_way(op: DftOp, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """The transpose of the linear map on the elements that were used, as complex numbers or their real parts."""
    length, axis, is_inverse = integer(op.length), op.along(), flag(op.inverse)
    if not flag(op.onesided):
        value = emit(DftOp, cotangent, axis=axis, length=length, inverse=not is_inverse)
        return emit(MulOp, value, emit.splat(1 / length if is_inverse else length, value))
    if is_inverse:
        value = emit(DftOp, cotangent, axis=axis, length=length, onesided=True)
        return _weighted(value, axis, length, 1 / length, 2 / length, emit)
    weighted = _weighted(cotangent, axis, length, length, length / 2, emit)
    return emit(DftOp, weighted, axis=axis, length=length, inverse=True, onesided=True)


def _weighted(value: SSAValue, axis: int, length: int, alone: float, others: float, emit: Emitter) -> SSAValue:
    """Half of the frequencies, those without a mirror image times `alone`, the others times `others`."""
    factors = np.full(length // 2 + 1, others, numpy_dtype(element_of(value)))
    factors[0] = alone
    if length % 2 == 0:
        factors[-1] = alone
    shaped = factors.reshape(*[-1 if position == axis else 1 for position in range(rank_of(value))])
    return emit(MulOp, value, emit.constant(shaped, "frequency_weights"))


def _resized(value: SSAValue, axis: int, size: int, emit: Emitter) -> SSAValue:
    """A value cropped or zero-padded along an axis."""
    own = size_along(value, axis)
    if own >= size:
        return part_along(value, axis, 0, size, emit)
    pads = [0] * (2 * rank_of(value))
    pads[rank_of(value) + axis] = size - own
    return emit(PadOp, value, pads=pads)
