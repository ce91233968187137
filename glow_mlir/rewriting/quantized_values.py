"""Quantized values with their scales, and linear combinations of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import storage_of
from glow_mlir.dialects.glow_high.data_movement import PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, DivOp, MulOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, StorageCastOp
from glow_mlir.dialects.quant import UniformQuantizedType, parameters_of, zero_point_of
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.dataclass import dataclass

MAX_TERMS = 8
"""Maximum number of operators of a sum that are visited."""


class Quantized(NamedTuple):
    """A quantized value: (`value` - zero point of its type) · `scale`, where the scale is a number or a value."""

    value: SSAValue
    scale: float | SSAValue


def quantized_of(value: SSAValue, storage: Storage) -> Quantized | None:
    """The quantized operand of a dequantization to f32 whose zero point is in its type or absent; else `None`."""
    op = value.owner
    if not isinstance(op, DequantizeOp) or element_of(op.result) != f32 or sizes_of(op.input) != sizes_of(op.result):
        return None
    if op.scale is None:
        known = parameters_of(element_of(op.input))
        assert known is not None
        return Quantized(op.input, known[0])
    if op.zero_point is not None:
        zero = storage.value_of(op.zero_point)
        if zero is None or zero.any():
            return None
    return Quantized(op.input, op.scale)


def untyped(value: SSAValue) -> SSAValue:
    """The integers behind a cast to a quantized type."""
    owner = value.owner
    return owner.input if isinstance(owner, StorageCastOp) and is_typing(owner) else value


def is_typing(op: StorageCastOp) -> bool:
    """Whether an operator only casts integers to a quantized type, which constants do not have."""
    return storage_of(op.to) != op.to


def stored_integers(value: SSAValue, emit: Emitter) -> SSAValue:
    """Cast quantized values to their storage integers; other values are returned as they are."""
    element = element_of(value)
    return value if storage_of(element) == element else emit(StorageCastOp, value, to=storage_of(element))


def known_quantized(quantized: Quantized, storage: Storage) -> np.ndarray | None:
    """Dequantize a constant to f32; `None` if value or scale is known only at run time."""
    integers, scale = storage.value_of(untyped(quantized.value)), known_scale(quantized.scale, storage)
    if integers is None or scale is None:
        return None
    less = integers.astype(np.int64) - zero_point_of(element_of(quantized.value))
    return np.asarray(less.astype(np.float32) * scale)


def known_scale(scale: float | SSAValue, storage: Storage) -> np.ndarray | None:
    """A scale as an array of f32; `None` if it is known only at run time."""
    return storage.value_of(scale) if isinstance(scale, SSAValue) else np.asarray(scale, np.float32)


def product_of_scales(left: float | SSAValue, right: float | SSAValue, emit: Emitter) -> SSAValue:
    """The f32 product of two scales: a constant if both are known."""
    first, second = known_scale(left, emit.storage), known_scale(right, emit.storage)
    if first is not None and second is not None:
        return emit.constant(np.asarray(first * second), "scale")
    values = [scale if isinstance(scale, SSAValue) else emit.splat(scale, f32) for scale in (left, right)]
    return emit(MulOp, *values)


def reshaped_scale(scale: SSAValue, shape: Shape, emit: Emitter) -> SSAValue:
    """Reshape a scale: a constant if it is known."""
    known = emit.known(scale)
    return emit(ReshapeOp, scale, shape=shape) if known is None else emit.constant(known.reshape(shape), "scale")


def transposed_scale(scale: SSAValue, permutation: Shape, emit: Emitter) -> SSAValue:
    """Transpose a scale: a constant if it is known."""
    known = emit.known(scale)
    if known is None:
        return emit(TransposeOp, scale, permutation=permutation)
    return emit.constant(known.transpose(permutation), "scale")


def with_zeros(value: SSAValue, pads: Sequence[int], emit: Emitter) -> SSAValue:
    """Pad a tensor with zeros, or with its zero point if quantized; `pads` as in `PadOp`."""
    element = element_of(value)
    if not isinstance(element, UniformQuantizedType):
        return emit(PadOp, value, pads=pads)
    stored = element.storage
    integers, zero = emit(StorageCastOp, value, to=stored), emit.splat(zero_point_of(element), stored)
    return emit(StorageCastOp, emit(PadOp, integers, zero, pads=pads), to=element)


@dataclass(frozen=True)
class Combination:
    """A linear combination: Σ factor · (quantized value - zero point) + offset; factors and offset broadcast."""

    terms: tuple[tuple[SSAValue, np.ndarray], ...]
    offset: np.ndarray | None = None

    def times(self, factor: np.ndarray) -> Combination:
        """The combination times a factor."""
        terms = tuple((value, np.asarray(scale * factor)) for value, scale in self.terms)
        return Combination(terms, None if self.offset is None else np.asarray(self.offset * factor))

    def over(self, divisor: float | np.ndarray) -> Combination:
        """The combination divided by a number, or by numbers that broadcast."""
        unit = np.asarray(divisor, np.float32)
        terms = tuple((value, np.asarray(factor / unit)) for value, factor in self.terms)
        return Combination(terms, None if self.offset is None else np.asarray(self.offset / unit))

    def plus(self, other: Combination) -> Combination:
        """The sum of two combinations."""
        offsets = [offset for offset in (self.offset, other.offset) if offset is not None]
        return Combination((*self.terms, *other.terms), np.asarray(sum(offsets)) if offsets else None)


def combination_of(value: SSAValue, storage: Storage, limit: int = MAX_TERMS) -> Combination | None:
    """Express an f32 value as a combination of quantized values and a constant; `None` if it has another form."""
    known = storage.value_of(value)
    if known is not None:
        return Combination((), known) if known.dtype == np.float32 else None
    quantized = quantized_of(value, storage)
    if quantized is not None:
        scale, numbers = known_scale(quantized.scale, storage), known_quantized(quantized, storage)
        if numbers is not None:
            return Combination((), numbers)
        return None if scale is None else Combination(((quantized.value, scale),))
    op = value.owner
    if not limit or not isinstance(op, AddOp | SubOp | MulOp | DivOp | NegOp):
        return None
    parts = [combination_of(operand, storage, limit // 2) for operand in op.operands]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    first, last = found[0], found[-1]
    if isinstance(op, MulOp):
        sum_, factor = (last, first) if last.terms else (first, last)
        return None if factor.terms or factor.offset is None else sum_.times(factor.offset)
    if isinstance(op, DivOp):
        return None if last.terms or last.offset is None or not last.offset.all() else first.over(last.offset)
    minus = np.asarray(-1, np.float32)
    if isinstance(op, NegOp):
        return first.times(minus)
    return first.plus(last if isinstance(op, AddOp) else last.times(minus))
