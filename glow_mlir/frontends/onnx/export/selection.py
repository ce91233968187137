"""Results that are as large as their data says, in the words of ONNX."""

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
    What a node found along an axis, with zeros behind it up to the size of the operator's first result.

    Behind that is the number of what was found. `names` says for each result how the node calls what was found; slices
    that take just that need neither zeros nor a node.
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
    """The symbols that are the number of what was found, whatever it is."""
    capacity = shape_of(op.results[0])[axis]
    users = (use.operation for use in op.results[-1].uses)
    bound = [user.bound for user in users if isinstance(user, BindSymbolOp) and isinstance(user.parent_op(), FuncOp)]
    return [symbol for symbol in bound if symbol.least == 0 and symbol.most >= capacity]


def _cuts(result: SSAValue, axis: int, symbol: Symbol) -> list[SSAValue]:
    """The slices that take the first elements along an axis, as many as the symbol says, and all along the others."""
    whole: list[tuple[Size, Size, int]] = [(0, size, 1) for size in sizes_of(result)]
    whole[axis] = (0, SymbolicSize.of(symbol), 1)
    users = (use.operation for use in result.uses)
    return [user.result for user in users if isinstance(user, SliceOp) and user.bounds() == tuple(whole)]


@onnx_export(selection.NonZeroOp)
def non_zero(writer: Writer, op: selection.NonZeroOp) -> Sequence[str]:
    """Places of what is not zero."""
    return _filled(writer, op, {op.result: writer.emit("NonZero", op.input)}, axis=1)


@onnx_export(selection.UniqueOp)
def unique(writer: Writer, op: selection.UniqueOp) -> Sequence[str]:
    """The different rows, where they are, and how often."""
    found, indices, inverse, often = writer.emit_all("Unique", 4, op.input, axis=0, sorted=int(flag(op.sorted)))
    names: dict[SSAValue, str] = {op.result: found, op.indices: indices, op.occurrences: often}
    rows, positions, counts, count = _filled(writer, op, names)
    return [rows, positions, inverse, counts, count]


@onnx_export(selection.NonMaxSuppressionOp)
def non_max_suppression(writer: Writer, op: selection.NonMaxSuppressionOp) -> Sequence[str]:
    """The best of boxes that overlap; never more of a class than there is room for."""
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
