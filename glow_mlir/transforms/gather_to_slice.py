"""`gather-to-slice`: turn gathers with known indices at even distances into slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.canonicalization.slices import bounds
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import normalize_axis, shape_of, size_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace


@dataclass(frozen=True)
class GatherToSlicePass(ModulePass):
    """
    Turn gathers whose indices are constant and evenly spaced into slices (Glow's GatherToSlice).

    Equal indices give one slice that is expanded. A slice can be a view; a gather never is.
    """

    name = "gather-to-slice"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, GatherOp):
                    slice_instead(candidate, storage)
            erase_dead(function.block)


def slice_instead(op: GatherOp, storage: Storage) -> None:
    """Replace a gather by a slice, where its indices are known and evenly spaced."""
    indices = storage.value_of(op.indices)
    shape = shape_of(op.input)
    axis = normalize_axis(integer(op.axis), len(shape))
    taken = None if indices is None or not size_of(op.result) else evenly_spaced(indices, shape[axis])
    if taken is None or indices is None:
        return
    ranges = [range(size) for size in shape]
    ranges[axis] = taken
    emit = Emitter(op, storage)
    value = emit(SliceOp, op.input, **bounds(ranges))
    if len(taken) < indices.size:
        value = emit(ExpandOp, value, shape=(*shape[:axis], indices.size, *shape[axis + 1 :]))
    replace(op, [emit(ReshapeOp, value, shape=shape_of(op.result))])


def evenly_spaced(indices: np.ndarray, size: int) -> range | None:
    """The range of `indices` into `size` elements, of one element where all are equal; `None` where there is none."""
    flat = indices.reshape(-1).astype(np.int64)
    places = np.clip(np.where(flat < 0, flat + size, flat), 0, size - 1)
    steps = np.diff(places)
    if len(steps) and (steps != steps[0]).any():
        return None
    step = int(steps[0]) if len(steps) else 0
    first = int(places[0])
    return range(first, first + 1) if step == 0 else range(first, first + step * len(places), step)
