"""Results that are as large as their data says, in the words of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.dialects.glow_high import selection
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.ir.registry import onnx_export


def _filled(writer: Writer, op: HighOp, names: Sequence[str], axis: int = 0) -> list[str]:
    """
    What a node found along an axis, with zeros behind it up to the size of the operator's first result.

    Behind that is the number of what was found.
    """
    count = writer.emit("Shape", names[0], start=axis, end=axis + 1)
    missing = writer.emit("Sub", writer.constant([shape_of(op.results[0])[axis]]), count)
    axes, none = writer.constant([axis]), writer.constant([0])
    pads = writer.emit("Concat", none, missing, axis=0)
    filled = [writer.emit("Pad", name, pads, "", axes) for name in names]
    return [*filled, writer.reshaped(count, ())]


@onnx_export(selection.NonZeroOp)
def non_zero(writer: Writer, op: selection.NonZeroOp) -> Sequence[str]:
    """Places of what is not zero."""
    return _filled(writer, op, [writer.emit("NonZero", op.input)], axis=1)


@onnx_export(selection.UniqueOp)
def unique(writer: Writer, op: selection.UniqueOp) -> Sequence[str]:
    """The different rows, where they are, and how often."""
    found, indices, inverse, often = writer.emit_all("Unique", 4, op.input, axis=0, sorted=int(flag(op.sorted)))
    rows, places, counts, count = _filled(writer, op, [found, indices, often])
    return [rows, places, inverse, counts, count]


@onnx_export(selection.NonMaxSuppressionOp)
def non_max_suppression(writer: Writer, op: selection.NonMaxSuppressionOp) -> Sequence[str]:
    """The best of boxes that overlap; never more of a class than there is room for."""
    most = writer.constant(integer(op.limit))
    if op.max_output_boxes_per_class is not None:
        most = writer.emit("Min", writer.reshaped(op.max_output_boxes_per_class, ()), most)
    thresholds = (
        "" if value is None else writer.reshaped(value, ()) for value in (op.iou_threshold, op.score_threshold)
    )
    center = int(flag(op.center_point_box))
    rows = writer.emit("NonMaxSuppression", op.boxes, op.scores, most, *thresholds, center_point_box=center)
    return _filled(writer, op, [rows])
