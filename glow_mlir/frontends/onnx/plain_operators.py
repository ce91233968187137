"""The importers of plain operators, as the operator map has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue
from xdsl.irdl import OptionalDef, VariadicDef

from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operator_map import PLAIN_OPERATORS, PlainOperator
from glow_mlir.ir.registry import onnx_operator

Importer = Callable[[Node], Sequence[SSAValue]]


def plain_importer(row: PlainOperator) -> Importer:
    """The importer of a plain operator: its operands in order, and its attributes as properties."""
    operator, attributes = row.operator, row.attributes
    (_, first), *rest = operator.get_irdl_definition().operands
    if isinstance(first, VariadicDef) and not isinstance(first, OptionalDef) and not rest:
        return lambda node: node.emit_all(operator, node.present(), **attributes.import_from(node))
    return lambda node: node.emit_all(operator, *node.present(), **attributes.import_from(node))


for _row in PLAIN_OPERATORS.values():
    onnx_operator(_row.kind, since=_row.since)(plain_importer(_row))
