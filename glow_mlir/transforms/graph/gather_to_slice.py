"""`gather-to-slice`: turn gathers with constant, evenly spaced indices into slices."""

from __future__ import annotations

import numpy as np

from glow_mlir.dialects.glow_high.canonicalization.slices import bounds
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import may_be_empty, normalize_axis, shape_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass


class GatherToSlice(Pattern):
    """Replace a gather with constant, evenly spaced indices by a slice, which is expanded if they are equal."""

    @rooted
    def match_and_rewrite(self, op: GatherOp, rewriter: Rewriter, /) -> None:
        indices = rewriter.storage.value_of(op.indices)
        shape = shape_of(op.input)
        axis = normalize_axis(integer(op.axis), len(shape))
        taken = None if indices is None or may_be_empty(op.result) else evenly_spaced(indices, shape[axis])
        if taken is None or indices is None:
            return
        ranges = [range(size) for size in shape]
        ranges[axis] = taken
        emit = rewriter.emit
        value = emit(SliceOp, op.input, **bounds(ranges))
        if len(taken) < indices.size:
            value = emit(ExpandOp, value, shape=(*shape[:axis], indices.size, *shape[axis + 1 :]))
        rewriter.replace(op, ReshapeOp.make(value, shape=shape_of(op.result)))


@dataclass(frozen=True)
class GatherToSlicePass(PatternPass):
    """
    Turn gathers with constant, evenly spaced indices into slices (Glow's GatherToSlice).

    Equal indices give an expanded slice. A slice can be a view; a gather never is.
    """

    name = "gather-to-slice"
    WALKS = (Walk((GatherToSlice(),)),)


def evenly_spaced(indices: np.ndarray, size: int) -> range | None:
    """
    The range of `indices` into `size` elements, of length one if all are equal; `None` if they are uneven or out of
    range.
    """
    flat = indices.reshape(-1).astype(np.int64)
    positions = np.where(flat < 0, flat + size, flat)
    steps = np.diff(positions)
    if (len(steps) and (steps != steps[0]).any()) or positions.min() < 0 or positions.max() >= size:
        return None
    step = int(steps[0]) if len(steps) else 0
    first = int(positions[0])
    return range(first, first + 1) if step == 0 else range(first, first + step * len(positions), step)
