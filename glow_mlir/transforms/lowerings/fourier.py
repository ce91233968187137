"""
Lowering of Fourier transforms to matrix products.

A short transform is the product with a constant matrix. A transform of length `first * second` is computed by the
Cooley-Tukey algorithm: transforms of length `first`, twiddle factors, and transforms of length `second`. A transform of
a large prime length is a convolution (Bluestein), computed by three transforms of a length with small factors.
"""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import byte_width, numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, size_along, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import lowering
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, product_of

LONGEST_PRODUCT = 64
"""Maximum length of a transform as one product; longer ones are factored."""

LONGEST_PRIME = 256
"""Maximum length of a transform as one product if no factor is short enough."""


@lowering(DftOp)
def dft(op: DftOp, emit: Emitter) -> SSAValue:
    """Move the axis to the end, in front of real and imaginary parts; 16-bit floats are transformed in f32."""
    element = element_of(op.input)
    value = emit(CastOp, op.input, to=f32) if byte_width(element) < 4 else op.input
    shape, axis = sizes_of(op.input), op.along()
    order = (*(other for other in range(len(shape) - 1) if other != axis), axis, len(shape) - 1)
    value = _fitted(emit, emit(TransposeOp, value, permutation=order), op.taken())
    others = tuple(shape[other] for other in order[:-2])
    rows = (product_of(others), op.taken(), shape[-1])
    value = emit(ReshapeOp, value, shape=rows)
    length = integer(op.length)
    if op.gives_real():
        value = _fitted(emit, _doubled(emit, value, length), length)
    transform = _Transform(emit, flag(op.inverse), op.gives_real())
    value = transform.rows(value, op.given())
    value = emit(ReshapeOp, value, shape=(*others, *sizes_of(value)[1:]))
    value = emit(TransposeOp, value, permutation=tuple(order.index(other) for other in range(len(order))))
    return emit(CastOp, value, to=element) if byte_width(element) < 4 else value


def _fitted(emit: Emitter, value: SSAValue, length: int) -> SSAValue:
    """Crop or zero-pad the axis before the last to `length`."""
    shape = sizes_of(value)
    size, rank = size_along(value, -2), len(shape)
    if size > length:
        ends = (*shape[:-2], length, shape[-1])
        return emit(SliceOp, value, starts=(0,) * rank, ends=ends)
    pads = (*(0,) * rank, *(0,) * (rank - 2), length - size, 0)
    return emit(PadOp, value, pads=pads) if size < length else value


def _doubled(emit: Emitter, value: SSAValue, length: int) -> SSAValue:
    """
    Double one half of the frequencies for their mirror images; the first, and the last of an even length, have none.
    """
    factors = np.full((size_along(value, 1), 1), 2.0, numpy_dtype(element_of(value)))
    factors[0] = 1.0
    if length % 2 == 0:
        factors[-1] = 1.0
    return emit(MulOp, value, emit.constant(factors, "mirrored"))


def _signal(value: SSAValue) -> tuple[Size, int, int]:
    """The number of signals, their length, and the number of parts per number (real, imaginary)."""
    return sizes_of(value)[0], size_along(value, 1), size_along(value, 2)


def _turns(numerators: np.ndarray, length: int) -> np.ndarray:
    """The twiddle factors exp(2πi · numerator / length), reduced first so that large numerators are exact."""
    return np.exp(2j * np.pi * (numerators % length) / length)


def _parts(matrix: np.ndarray) -> np.ndarray:
    """The real matrix [rows, 2, columns, 2] of a complex matrix, from parts to parts."""
    real, imaginary = np.real(matrix), np.imag(matrix)
    return np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 1)


@dataclass(frozen=True)
class _Transform:
    """Transforms of rows [rows, length, parts] in one direction."""

    emit: Emitter
    inverse: bool
    real: bool
    """Whether only real parts of the results are wanted."""

    def rows(self, value: SSAValue, given: int) -> SSAValue:
        """The first `given` frequencies of each row: [rows, given, parts]."""
        _, length, _ = _signal(value)
        first = _factor(length)
        if first == length:
            return self._product(value, given)
        if first == 1:
            return self._convolved(value, given)
        return self._factored(value, first, given)

    def _signed(self, numerators: np.ndarray) -> np.ndarray:
        return numerators if self.inverse else -numerators

    def _constant(self, array: np.ndarray, like: SSAValue) -> SSAValue:
        return self.emit.constant(array.astype(numpy_dtype(element_of(like))), "turns")

    def _matrix(self, length: int, given: int) -> np.ndarray:
        """The transform as a complex matrix."""
        matrix = _turns(self._signed(np.outer(np.arange(length), np.arange(given))), length)
        return matrix / length if self.inverse else matrix

    def _product(self, value: SSAValue, given: int) -> SSAValue:
        rows, length, parts = _signal(value)
        wanted = 1 if self.real else 2
        matrix = _parts(self._matrix(length, given))[:, :parts, :, :wanted]
        flat = self.emit(ReshapeOp, value, shape=(rows, length * parts))
        product = self.emit(MatMulOp, flat, self._constant(matrix.reshape(length * parts, given * wanted), value))
        return self.emit(ReshapeOp, product, shape=(rows, given, wanted))

    def _factored(self, value: SSAValue, first: int, given: int) -> SSAValue:
        """
        Cooley-Tukey step: signal index `second * i + j`, frequency `k + first * l`; over i for each j, then over j for
        each k.
        """
        emit = self.emit
        rows, length, parts = _signal(value)
        second = length // first
        value = emit(ReshapeOp, value, shape=(rows, first, second, parts))
        value = emit(
            ReshapeOp, emit(TransposeOp, value, permutation=(0, 2, 1, 3)), shape=(rows * second, first * parts)
        )
        # Columns have all real parts first, then all imaginary ones, so that the next steps vectorize.
        matrix = _parts(self._matrix(first, first))[:, :parts].transpose(0, 1, 3, 2)
        value = emit(MatMulOp, value, self._constant(matrix.reshape(first * parts, 2 * first), value))
        value = emit(ReshapeOp, value, shape=(rows, second, 2, first))
        turns = _turns(self._signed(np.outer(np.arange(second), np.arange(first))), length)
        value = emit(TransposeOp, self._turned(value, turns[:, None, :], axis=2), permutation=(0, 3, 1, 2))
        inner = -(-given // first)
        value = self.rows(emit(ReshapeOp, value, shape=(rows * first, second, 2)), inner)
        wanted = size_along(value, -1)
        value = emit(ReshapeOp, value, shape=(rows, first, inner, wanted))
        value = emit(TransposeOp, value, permutation=(0, 2, 1, 3))
        return _fitted(emit, emit(ReshapeOp, value, shape=(rows, inner * first, wanted)), given)

    def _turned(self, value: SSAValue, turns: np.ndarray, axis: int) -> SSAValue:
        """Multiply complex numbers, with parts along `axis`, by constants that broadcast."""
        emit = self.emit
        shape = sizes_of(value)
        halves: list[SSAValue] = []
        for part in range(2):
            starts, ends = [0] * len(shape), list(shape)
            starts[axis], ends[axis] = part, part + 1
            halves.append(emit(SliceOp, value, starts=starts, ends=ends))
        real, imaginary = halves
        cosine, sine = (self._constant(part, value) for part in (np.real(turns), np.imag(turns)))
        turned = (
            emit(SubOp, emit(MulOp, real, cosine), emit(MulOp, imaginary, sine)),
            emit(AddOp, emit(MulOp, real, sine), emit(MulOp, imaginary, cosine)),
        )
        return emit(ConcatOp, turned, axis=axis)

    def _convolved(self, value: SSAValue, given: int) -> SSAValue:
        """Bluestein's algorithm: a product with a chirp, a convolution with its inverse, and another product."""
        emit = self.emit
        rows, length, parts = _signal(value)
        if parts == 1:
            value = emit(ConcatOp, (value, emit.splat(0, value, (rows, length, 1))), axis=2)
        steps = np.arange(length)
        chirp = _turns(self._signed(steps * steps), 2 * length)
        reach = 1 << (2 * length - 2).bit_length()
        filter_ = np.zeros(reach, np.complex128)
        filter_[:length] = chirp.conj()
        filter_[reach - length + 1 :] = chirp[:0:-1].conj()
        forward = _Transform(emit, False, False)
        value = _fitted(emit, self._turned(value, chirp[:, None], axis=2), reach)
        value = self._turned(forward.rows(value, reach), np.fft.fft(filter_)[:, None], axis=2)
        value = _Transform(emit, True, False).rows(value, given)
        value = self._turned(value, (chirp[:given] / (length if self.inverse else 1))[:, None], axis=2)
        return emit(SliceOp, value, starts=(0, 0, 0), ends=(rows, given, 1)) if self.real else value


def _factor(length: int) -> int:
    """
    The length of the transforms of the first product: all of a short length, 1 if no factor is short.

    Among the factors, choose the one that makes the remaining products about equally long.
    """
    if length <= LONGEST_PRODUCT:
        return length
    products = math.ceil(math.log(length) / math.log(LONGEST_PRODUCT))
    ideal = length ** (1 / products)
    factors = [factor for factor in range(2, LONGEST_PRODUCT + 1) if length % factor == 0]
    if factors:
        return min(factors, key=lambda factor: abs(math.log(factor / ideal)))
    return length if length <= LONGEST_PRIME else 1
