"""Export of data movement and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from glow_mlir.dialects.glow_high import data_movement as moves
from glow_mlir.dialects.glow_high import reductions
from glow_mlir.dialects.glow_high.indexing import ReverseSequenceOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import flag, integer, ints, sizes, text
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of
from glow_mlir.frontends.onnx.export.writer import FIRST, Writer
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.frontends.onnx.operators.reductions import AXES_OPERAND
from glow_mlir.ir.registry import onnx_export


@onnx_export(moves.ReshapeOp)
def reshape(writer: Writer, op: moves.ReshapeOp) -> str:
    """A Reshape."""
    return writer.reshaped(op.input, sizes(op.shape))


@onnx_export(moves.TransposeOp)
def transpose(writer: Writer, op: moves.TransposeOp) -> str:
    """A Transpose."""
    return writer.transposed(op.input, ints(op.permutation))


@onnx_export(moves.SliceOp)
def slice_(writer: Writer, op: moves.SliceOp) -> str:
    """A Slice; none if the operand's node already gives exactly this slice."""
    if op.result in writer.cuts:
        return writer.cuts[op.result]
    starts, ends = sizes(op.starts), tuple(FIRST if isinstance(end, int) and end < 0 else end for end in sizes(op.ends))
    steps = ints(op.steps) or (1,) * len(starts)
    bounds = (starts, ends, tuple(range(len(starts))), steps)
    return writer.moved("Slice", [op.input], element_of(op.input), *(writer.sizes(item) for item in bounds))


@onnx_export(moves.PadOp)
def pad(writer: Writer, op: moves.PadOp) -> str:
    """A Pad."""
    return writer.emit("Pad", op.input, writer.constant(ints(op.pads)), op.value, mode=text(op.mode))


@onnx_export(ReverseSequenceOp)
def reverse_sequence(writer: Writer, op: ReverseSequenceOp) -> str:
    """A ReverseSequence; time and batch axes are moved to the front, because ONNX supports no other axes."""
    element, rank = element_of(op.input), rank_of(op.input)
    batch, time = (normalize_axis(integer(axis), rank) for axis in (op.batch_axis, op.time_axis))
    rest = [axis for axis in range(rank) if axis not in (batch, time)]
    order = tuple(range(rank)) if {batch, time} == {0, 1} else (time, batch, *rest)
    moved = writer.transposed(writer.widened(op.input, element), order)
    axes = {"batch_axis": order.index(batch), "time_axis": order.index(time)}
    result = writer.emit("ReverseSequence", moved, op.lengths, **axes)
    back = tuple(order.index(axis) for axis in range(rank))
    return writer.narrowed(writer.transposed(result, back), element)


@onnx_export(moves.ExpandOp)
def expand(writer: Writer, op: moves.ExpandOp) -> str:
    """Broadcast to a shape."""
    return writer.moved("Expand", [op.input], element_of(op.input), writer.sizes(sizes(op.shape)))


@onnx_export(ShapeOp)
def shape(writer: Writer, op: ShapeOp) -> str:
    """Sizes as a vector."""
    return writer.sizes(sizes(op.sizes))


@onnx_export(moves.TileOp)
def tile(writer: Writer, op: moves.TileOp) -> str:
    """Repeat a value along each axis."""
    return writer.moved("Tile", [op.input], element_of(op.input), writer.constant(ints(op.repeats)))


# ---- reductions


def _reduction(kind: str) -> Callable[[Writer, Any], str]:
    def export(writer: Writer, op: Any) -> str:
        axes = writer.constant(ints(op.axes))
        attributes = {"keepdims": int(flag(op.keepdims)), "noop_with_empty_axes": int(not ints(op.axes))}
        return writer.emit(kind, op.input, axes, **attributes)

    return export


for _name, (_operator, _) in AXES_OPERAND.items():
    onnx_export(_operator)(_reduction(_name))


@onnx_export(reductions.CumSumOp)
def cum_sum(writer: Writer, op: reductions.CumSumOp) -> str:
    """Running sums along an axis."""
    return writer.emit(
        "CumSum", op.input, writer.constant(integer(op.axis)), **ATTRIBUTE_MAPS["CumSum"].export_from(op)
    )


@onnx_export(reductions.TopKOp)
def top_k(writer: Writer, op: reductions.TopKOp) -> Sequence[str]:
    """The largest or smallest elements, and their positions."""
    attributes = ATTRIBUTE_MAPS["TopK"].export_from(op)
    return writer.emit_all("TopK", 2, op.input, writer.constant([integer(op.k)]), **attributes)
