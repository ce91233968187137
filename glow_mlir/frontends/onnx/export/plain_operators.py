"""The exporters of plain operators, derived from the operator map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.frontends.onnx.export.writer import Writer
from glow_mlir.frontends.onnx.operators.operator_map import PLAIN_OPERATORS, PlainOperator
from glow_mlir.ir.registry import onnx_export

Exporter = Callable[[Writer, HighOp], Sequence[str]]


def plain_exporter(row: PlainOperator) -> Exporter:
    """The exporter of a plain operator; narrow elements that it moves are temporarily widened, see `Writer.widened`."""

    def export(writer: Writer, op: HighOp) -> Sequence[str]:
        attributes = row.attributes.export_from(op)
        if not row.moved:
            return writer.emit_all(row.kind, len(op.results), *op.operands, **attributes)
        element = element_of(op.results[0])
        operands = [
            writer.widened(value, element) if name in row.moved and value is not None else writer.name(value)
            for name, group in op.operand_groups()
            for value in group
        ]
        return [writer.narrowed(writer.emit(row.kind, *operands, **attributes), element)]

    return export


for _row in PLAIN_OPERATORS.values():
    if _row.is_exported:
        onnx_export(_row.operator)(plain_exporter(_row))
