"""What moves elements: reshapes, transposes, parts, borders and repetitions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import integer, ints, sizes, text
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of
from tosa_backend.builder import TosaBuilder
from tosa_backend.elements import held, held_zero_point
from tosa_backend.emitters.indexing import taken
from tosa_backend.rules import emits


@emits(SplatOp)
def splat(op: SplatOp, b: TosaBuilder) -> SSAValue:
    """A constant."""
    return b.value(op.result)


@emits(ReshapeOp)
def reshape(op: ReshapeOp, b: TosaBuilder) -> SSAValue:
    """RESHAPE."""
    return b.reshape(b.value(op.input), shape_of(op.result))


@emits(TransposeOp)
def transpose(op: TransposeOp, b: TosaBuilder) -> SSAValue:
    """TRANSPOSE."""
    return b.transpose(b.value(op.input), ints(op.permutation))


@emits(ConcatOp)
def concat(op: ConcatOp, b: TosaBuilder) -> SSAValue:
    """CONCAT."""
    return b.concat([b.value(part) for part in op.parts], normalize_axis(integer(op.axis), rank_of(op.result)))


@emits(SliceOp)
def slice_(op: SliceOp, b: TosaBuilder) -> SSAValue:
    """SLICE; steps back are a REVERSE, and of wider ones one element each, in an axis of its own, is kept."""
    found = b.value(op.input)
    for axis, part in enumerate(op.ranges()):
        if part.step < 0:
            found, last = b.reverse(found, axis), shape_of(found)[axis] - 1
            part = range(last - part.start, last - part.stop, -part.step)
        found = _every(b, found, axis, part)
    return found


def _every(b: TosaBuilder, value: SSAValue, axis: int, part: range) -> SSAValue:
    """The elements of an axis at places that go forward."""
    shape, step = list(shape_of(value)), part.step
    starts = [0] * len(shape)
    starts[axis], size = part.start, shape[axis]
    if step == 1 or len(part) == 1:
        shape[axis] = len(part)
        return b.slice(value, starts, tuple(shape))
    shape[axis] = min(len(part) * step, size - part.start)
    taken = b.slice(value, starts, tuple(shape))
    widths = [(0, 0)] * len(shape)
    widths[axis] = (0, len(part) * step - shape[axis])
    whole = b.pad(taken, widths, b.splat(0, element_of(value)))
    before, after = tuple(shape[:axis]), tuple(shape[axis + 1 :])
    apart = b.reshape(whole, (*before, len(part), step, *after))
    first = b.slice(apart, [0] * (len(shape) + 1), (*before, len(part), 1, *after))
    return b.reshape(first, (*before, len(part), *after))


def _has_border(op: PadOp) -> bool:
    return text(op.mode) == "constant" or held(element_of(op.input)) != i1


@emits(PadOp, when=_has_border)
def pad(op: PadOp, b: TosaBuilder) -> SSAValue:
    """PAD; a border of elements of the input is gathered from it."""
    element, mode = element_of(op.input), text(op.mode)
    if mode != "constant":
        found = b.value(op.input)
        for axis, width in enumerate(op.widths()):
            if any(width):
                places = np.pad(np.arange(shape_of(found)[axis], dtype=np.int32), width, cast("Any", mode))
                found = taken(b, found, axis, b.constant(places[np.newaxis]))
        return found
    if op.value is None:
        fill = b.splat(held_zero_point(element), held(element))
    else:
        fill = b.reshape(b.value(op.value), (1,))
    return b.pad(b.value(op.input), op.widths(), fill)


@emits(ExpandOp)
def expand(op: ExpandOp, b: TosaBuilder) -> SSAValue:
    """TILE along the axes of size 1."""
    shape = tuple(int(size) for size in sizes(op.shape) if isinstance(size, int))
    value = b.ranked(b.value(op.input), len(shape))
    return b.tile(value, [size // given for size, given in zip(shape, shape_of(value), strict=True)])


@emits(TileOp)
def tile(op: TileOp, b: TosaBuilder) -> SSAValue:
    """TILE."""
    return b.tile(b.value(op.input), ints(op.repeats))
