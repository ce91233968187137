"""Data movement, indexing and reductions in the words of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from glow_mlir.dialects.glow_high import data_movement as moves
from glow_mlir.dialects.glow_high import indexing, reductions
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.properties import flag, integer, ints, sizes, text
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.onnx.export.writer import FIRST, Writer
from glow_mlir.frontends.onnx.reductions import AXES_OPERAND
from glow_mlir.ir.registry import onnx_export


@onnx_export(moves.ReshapeOp)
def reshape(writer: Writer, op: moves.ReshapeOp) -> str:
    """The same elements in another shape."""
    return writer.reshaped(op.input, sizes(op.shape))


@onnx_export(moves.TransposeOp)
def transpose(writer: Writer, op: moves.TransposeOp) -> str:
    """Axes in another order."""
    return writer.transposed(op.input, ints(op.permutation))


@onnx_export(moves.ConcatOp)
def concat(writer: Writer, op: moves.ConcatOp) -> str:
    """One after the other."""
    return writer.moved("Concat", op.parts, element_of(op.result), axis=integer(op.axis))


@onnx_export(moves.SliceOp)
def slice_(writer: Writer, op: moves.SliceOp) -> str:
    """Some elements along each axis."""
    if op.result in writer.cuts:
        return writer.cuts[op.result]
    starts, ends = sizes(op.starts), tuple(FIRST if isinstance(end, int) and end < 0 else end for end in sizes(op.ends))
    steps = ints(op.steps) or (1,) * len(starts)
    bounds = (starts, ends, tuple(range(len(starts))), steps)
    return writer.moved("Slice", [op.input], element_of(op.input), *(writer.sizes(item) for item in bounds))


@onnx_export(moves.PadOp)
def pad(writer: Writer, op: moves.PadOp) -> str:
    """Within a border."""
    return writer.emit("Pad", op.input, writer.constant(ints(op.pads)), op.value, mode=text(op.mode))


@onnx_export(moves.ExpandOp)
def expand(writer: Writer, op: moves.ExpandOp) -> str:
    """Broadcast to a shape."""
    return writer.moved("Expand", [op.input], element_of(op.input), writer.sizes(sizes(op.shape)))


@onnx_export(ShapeOp)
def shape(writer: Writer, op: ShapeOp) -> str:
    """Sizes as numbers."""
    return writer.sizes(sizes(op.sizes))


@onnx_export(moves.TileOp)
def tile(writer: Writer, op: moves.TileOp) -> str:
    """Whole copies side by side."""
    return writer.moved("Tile", [op.input], element_of(op.input), writer.constant(ints(op.repeats)))


# ---- indices


@onnx_export(indexing.GatherOp)
def gather(writer: Writer, op: indexing.GatherOp) -> str:
    """Slices along an axis."""
    return writer.moved("Gather", [op.input], element_of(op.input), op.indices, axis=integer(op.axis))


@onnx_export(indexing.GatherElementsOp)
def gather_elements(writer: Writer, op: indexing.GatherElementsOp) -> str:
    """Single elements along an axis."""
    return writer.moved("GatherElements", [op.input], element_of(op.input), op.indices, axis=integer(op.axis))


@onnx_export(indexing.GatherNDOp)
def gather_nd(writer: Writer, op: indexing.GatherNDOp) -> str:
    """Slices behind tuples of indices."""
    return writer.moved("GatherND", [op.input], element_of(op.input), op.indices, batch_dims=integer(op.batch_dims))


def _scattered(
    writer: Writer, kind: str, op: indexing.ScatterElementsOp | indexing.ScatterNDOp, attributes: Mapping[str, Any]
) -> str:
    """Updates in the places of elements."""
    element = element_of(op.input)
    data, updates = writer.widened(op.input, element), writer.widened(op.updates, element)
    return writer.narrowed(writer.emit(kind, data, op.indices, updates, **attributes), element)


@onnx_export(indexing.ScatterElementsOp)
def scatter_elements(writer: Writer, op: indexing.ScatterElementsOp) -> str:
    """Single elements along an axis, overwritten or combined."""
    attributes = {"axis": integer(op.axis), "reduction": text(op.reduction)}
    return _scattered(writer, "ScatterElements", op, attributes)


@onnx_export(indexing.ScatterNDOp)
def scatter_nd(writer: Writer, op: indexing.ScatterNDOp) -> str:
    """Slices behind tuples of indices, overwritten or combined."""
    return _scattered(writer, "ScatterND", op, {"reduction": text(op.reduction)})


@onnx_export(indexing.ReverseSequenceOp)
def reverse_sequence(writer: Writer, op: indexing.ReverseSequenceOp) -> str:
    """Backwards up to a length for each batch."""
    axes = {"batch_axis": integer(op.batch_axis), "time_axis": integer(op.time_axis)}
    return writer.moved("ReverseSequence", [op.input], element_of(op.input), op.lengths, **axes)


# ---- reductions


def _reduction(kind: str) -> Callable[[Writer, Any], str]:
    def export(writer: Writer, op: Any) -> str:
        axes = writer.constant(ints(op.axes))
        attributes = {"keepdims": int(flag(op.keepdims)), "noop_with_empty_axes": int(not ints(op.axes))}
        return writer.emit(kind, op.input, axes, **attributes)

    return export


for _name, (_operator, _) in AXES_OPERAND.items():
    onnx_export(_operator)(_reduction(_name))


def _position(kind: str) -> Callable[[Writer, Any], str]:
    def export(writer: Writer, op: Any) -> str:
        truths = {name: int(flag(getattr(op, name))) for name in ("keepdims", "select_last_index")}
        return writer.emit(kind, op.input, axis=integer(op.axis), **truths)

    return export


def _running(kind: str) -> Callable[[Writer, Any], str]:
    def export(writer: Writer, op: Any) -> str:
        truths = {name: int(flag(getattr(op, name))) for name in ("exclusive", "reverse")}
        return writer.emit(kind, op.input, writer.constant(integer(op.axis)), **truths)

    return export


onnx_export(reductions.ArgMaxOp)(_position("ArgMax"))
onnx_export(reductions.ArgMinOp)(_position("ArgMin"))
onnx_export(reductions.CumSumOp)(_running("CumSum"))


@onnx_export(reductions.TopKOp)
def top_k(writer: Writer, op: reductions.TopKOp) -> Sequence[str]:
    """The largest or smallest elements, and where they are."""
    attributes = {"axis": integer(op.axis), "largest": int(flag(op.largest)), "sorted": int(flag(op.sorted))}
    return writer.emit_all("TopK", 2, op.input, writer.constant([integer(op.k)]), **attributes)
