"""Export of operators whose result sizes depend on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high import selection
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import SliceOp
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import shape_of, sizes_of
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.ir.registry import onnx_export
from glow_mlir.support.symbols import Size, Symbol, SymbolicSize


def _filled(writer: Writer, op: HighOp, names: Mapping[SSAValue, str], axis: int = 0) -> list[str]:
    """
    The results of a node, padded with zeros along an axis to the capacity of the operator's results, and their number.

    `names` maps results of the operator to those of the node. Slices that only remove the padding use the node's
    results directly.
    """
    count = writer.emit("Shape", names[op.results[0]], start=axis, end=axis + 1)
    missing = writer.emit("Sub", writer.constant([shape_of(op.results[0])[axis]]), count)
    axes, none = writer.constant([axis]), writer.constant([0])
    pads = writer.emit("Concat", none, missing, axis=0)
    for symbol in _bound_symbols(op, axis):
        writer.counts[symbol.name] = count
        for result, name in names.items():
            writer.cuts.update((cut, name) for cut in _cuts(result, axis, symbol))
    filled = [writer.emit("Pad", name, pads, "", axes) for name in names.values()]
    return [*filled, writer.reshaped(count, ())]


def _bound_symbols(op: HighOp, axis: int) -> list[Symbol]:
    """The symbols bound to the number of results, with bounds that admit every number."""
    capacity = shape_of(op.results[0])[axis]
    users = (use.operation for use in op.results[-1].uses)
    bound = [user.bound for user in users if isinstance(user, BindSymbolOp) and isinstance(user.parent_op(), FuncOp)]
    return [symbol for symbol in bound if symbol.least == 0 and symbol.most >= capacity]


def _cuts(result: SSAValue, axis: int, symbol: Symbol) -> list[SSAValue]:
    """The slices that take the first `symbol` elements along an axis, and all elements along the others."""
    whole: list[tuple[Size, Size, int]] = [(0, size, 1) for size in sizes_of(result)]
    whole[axis] = (0, SymbolicSize.of(symbol), 1)
    users = (use.operation for use in result.uses)
    return [user.result for user in users if isinstance(user, SliceOp) and user.bounds() == tuple(whole)]


@onnx_export(selection.NonZeroOp)
def non_zero(writer: Writer, op: selection.NonZeroOp) -> Sequence[str]:
    """The positions of nonzero elements."""
    return _filled(writer, op, {op.result: writer.emit("NonZero", op.input)}, axis=1)


@onnx_export(selection.UniqueOp)
def unique(writer: Writer, op: selection.UniqueOp) -> Sequence[str]:
    """The unique rows, their first positions, the inverse mapping, and the numbers of occurrences."""
    found, indices, inverse, often = writer.emit_all("Unique", 4, op.input, axis=0, sorted=int(flag(op.sorted)))
    names: dict[SSAValue, str] = {op.result: found, op.indices: indices, op.occurrences: often}
    rows, positions, counts, count = _filled(writer, op, names)
    return [rows, positions, inverse, counts, count]


@onnx_export(selection.NonMaxSuppressionOp)
def non_max_suppression(writer: Writer, op: selection.NonMaxSuppressionOp) -> Sequence[str]:
    """Select the best of overlapping boxes, at most as many per class as the capacity allows."""
    most = writer.constant(0)
    if op.max_output_boxes_per_class is not None:
        asked = writer.reshaped(op.max_output_boxes_per_class, ())
        most = writer.emit("Min", asked, writer.constant(integer(op.limit)))
    thresholds = (
        "" if value is None else writer.reshaped(value, ()) for value in (op.iou_threshold, op.score_threshold)
    )
    center = int(flag(op.center_point_box))
    rows = writer.emit("NonMaxSuppression", op.boxes, op.scores, most, *thresholds, center_point_box=center)
    return _filled(writer, op, {op.result: rows})
