"""Data movement on quantized values, below a dequantization or above a quantization."""

from __future__ import annotations

import math

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import storage_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, DataMovement, PadOp, ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.pooling import MaxPoolOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp, StorageCastOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import ints, text
from glow_mlir.dialects.quant import UniformQuantizedType, zero_point_of
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.rewriting.quantized_values import known_scale, quantized_of, reshaped_scale, transposed_scale

INTEGERS_ONLY = MaxPoolOp | PadOp | ResizeOp
"""Operators that move the stored integers, not quantized types."""


class MoveQuantized(Pattern):
    """
    Move quantized values instead of dequantized ones; max pools choose among quantized values (Glow's
    sinkRescaleQuantizedNode and its like).
    """

    @rooted
    def match_and_rewrite(self, op: DataMovement | MaxPoolOp, rewriter: Rewriter, /) -> None:
        count = moved_operands(op)
        found = [quantized_of(value, rewriter.storage) for value in op.operands[:count]]
        known = [quantized for quantized in found if quantized is not None]
        if not found or len(known) < count:
            return
        first, element = known[0], element_of(known[0].value)
        emit = rewriter.emit
        scale = _moved_scale(op, first.scale, emit)
        alike = all(element_of(quantized.value) == element and quantized.scale == first.scale for quantized in known)
        if scale is None or not alike or (isinstance(op, MaxPoolOp) and not _is_positive(scale, emit)):
            rewriter.discard()
            return
        operands = [*(quantized.value for quantized in known), *op.operands[count:]]
        moved = _moved(op, operands, element, emit)
        if moved is None:
            rewriter.discard()
        else:
            rewriter.replace(op, DequantizeOp.make(moved, scale if isinstance(scale, SSAValue) else None))


def _is_positive(scale: float | SSAValue, emit: Emitter) -> bool:
    """Whether a scale is known to be positive, which preserves order; scales of types always are."""
    known = known_scale(scale, emit.storage)
    return known is not None and bool((known > 0).all())


def moved_operands(op: HighOp) -> int:
    """The number of leading operands that are moved."""
    return len(op.operands) if isinstance(op, ConcatOp) else 1


def _moved_scale(op: HighOp, scale: float | SSAValue, emit: Emitter) -> float | SSAValue | None:
    """The scale of the moved values; `None` if a scale per channel cannot follow the movement."""
    if not isinstance(scale, SSAValue) or rank_of(scale) == 0:
        return scale
    if size_of(scale) == 1:
        return reshaped_scale(scale, (), emit)
    if isinstance(op, ReshapeOp):
        shape = _reshaped(shape_of(scale), shape_of(op.input), shape_of(op.result))
        return None if shape is None else reshaped_scale(scale, shape, emit)
    if isinstance(op, TransposeOp) and rank_of(scale) == rank_of(op.input):
        return transposed_scale(scale, ints(op.permutation), emit)
    return None


def _reshaped(scale: Shape, before: Shape, after: Shape) -> Shape | None:
    """The shape of a per-axis scale after a reshape; `None` if the reshape does not keep that axis."""
    full = (*[1] * (len(before) - len(scale)), *scale)
    axis = next(axis for axis, size in enumerate(full) if size > 1)
    for position, size in enumerate(after):
        if size == full[axis] == math.prod(full) and math.prod(after[:position]) == math.prod(before[:axis]):
            return (*[1] * position, size, *[1] * (len(after) - position - 1))
    return None


def _moved(
    op: DataMovement | MaxPoolOp, operands: list[SSAValue], element: Attribute, emit: Emitter
) -> SSAValue | None:
    """The operator on quantized operands; `None` if it inserts numbers that are not quantized."""
    if isinstance(op, DataMovement) and not isinstance(op, ConcatOp | PadOp) and not op.moves_only():
        return None
    if not isinstance(op, INTEGERS_ONLY) or (isinstance(op, PadOp) and text(op.mode) != "constant"):
        return emit.insert(type(op).inferred(operands, op.properties, op.location)).results[0]
    if len(operands) > 1 and splat_number(operands[1]) != 0:
        return None
    stored = storage_of(element)
    integers = [emit(StorageCastOp, operands[0], to=stored)]
    if isinstance(op, PadOp):
        integers.append(emit.splat(zero_point_of(element), stored))
    moved = emit.insert(type(op).inferred(integers, op.properties, op.location)).results[0]
    return emit(StorageCastOp, moved, to=element)


class QuantizeMoved(Pattern):
    """Quantize the operands of a concat or pad instead of its result, if one of them is dequantized."""

    @rooted
    def match_and_rewrite(self, op: QuantizeOp, rewriter: Rewriter, /) -> None:
        mover = op.input.owner
        if not isinstance(op.to, UniformQuantizedType) or not isinstance(mover, ConcatOp | PadOp):
            return
        if not op.input.has_one_use() or (isinstance(mover, PadOp) and not _has_known_border(mover)):
            return
        parts = mover.operands[: moved_operands(mover)]
        if not any(isinstance(part.owner, DequantizeOp) for part in parts):
            return
        emit = rewriter.emit
        quantized = [emit(QuantizeOp, part, to=op.to) for part in mover.operands]
        if isinstance(mover, PadOp):
            stored = op.to.storage
            quantized = [emit(StorageCastOp, value, to=stored) for value in quantized]
        moved = emit.insert(type(mover).inferred(quantized, mover.properties, mover.location)).results[0]
        if element_of(moved) != op.to:
            moved = emit(StorageCastOp, moved, to=op.to)
        rewriter.replace(op, (), [moved])


def _has_known_border(op: PadOp) -> bool:
    return text(op.mode) == "constant" and op.value is not None
