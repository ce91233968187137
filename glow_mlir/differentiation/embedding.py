"""Gradients of sums of rows of tables."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp, SubOp
from glow_mlir.dialects.glow_high.embedding import SparseLengthsSumOp
from glow_mlir.dialects.glow_high.indexing import GatherOp, ScatterNDOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceSumOp
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions, converted_like, zeros_like
from glow_mlir.differentiation.data_movement import part_along
from glow_mlir.differentiation.indexing import rows_of
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import gradient


@gradient(SparseLengthsSumOp)
def sparse_lengths_sum(op: SparseLengthsSumOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """
    Each row that is read gets the cotangent of its segment times its weight; 0 for rows in no segment.

    Raises `UnsupportedError` for weights, scales and offsets of quantized values.
    """
    if not is_float(element_of(op.data)):
        hint = "differentiate with respect to a table of floats"
        raise UnsupportedError(
            "sparse_lengths_sum of quantized values has no gradient", node=location_name(op.location), hint=hint
        )

    def data() -> SSAValue:
        rows = _of_rows(op, cotangent, emit)
        if op.weights is not None:
            factors = rows_of(converted_like(op.weights, rows, emit), emit)
            rows = emit(MulOp, rows, factors)
        return emit(ScatterNDOp, zeros_like(op.data, emit), rows_of(op.indices, emit), rows, reduction="add")

    def weights() -> SSAValue | None:
        if op.weights is None:
            return None
        taken = emit(GatherOp, op.data, op.indices, axis=0)
        product = emit(MulOp, taken, _of_rows(op, cotangent, emit))
        return converted_like(emit(ReduceSumOp, product, axes=(1,), keepdims=False), op.weights, emit)

    return {"data": data, "weights": weights}


def _of_rows(op: SparseLengthsSumOp, cotangent: SSAValue, emit: Emitter) -> SSAValue:
    """
    The cotangent of the segment of each index; indices in no segment read the row of zeros appended to all segments.
    """
    padded = emit(PadOp, cotangent, pads=(0, 0, 1, 0))
    return emit(GatherOp, padded, _segments(op, emit), axis=0)


def _segments(op: SparseLengthsSumOp, emit: Emitter) -> SSAValue:
    """
    The segment number of each index, or the number of the row of zeros.

    It is the number of segment starts not after the index, minus one: -1 (the last row) before all segments, and the
    number of segments (the same row) after them.
    """
    edges = _EDGES[text(op.bounds)](op.segments, emit)
    (count,), like = sizes_of(op.indices), element_of(op.segments)
    marks = emit(
        ScatterNDOp,
        emit.splat(0, like, (count + 1,)),
        rows_of(edges, emit),
        emit.splat(1, like, sizes_of(edges)),
        reduction="add",
    )
    begun = part_along(emit(CumSumOp, marks, axis=0), 0, 0, count, emit)
    return emit(SubOp, begun, emit.splat(1, like))


def _of_lengths(lengths: SSAValue, emit: Emitter) -> SSAValue:
    zero = emit.splat(0, lengths, (1,))
    return emit(ConcatOp, [zero, emit(CumSumOp, lengths, axis=0)], axis=0)


def _as_given(bounds: SSAValue, emit: Emitter) -> SSAValue:
    return bounds


_EDGES: dict[str, Callable[[SSAValue, Emitter], SSAValue]] = {
    "lengths": _of_lengths,
    "starts": _as_given,
    "edges": _as_given,
}
"""Kind of segment bounds → the starts, and the end of the last segment unless it is the end of the indices."""
