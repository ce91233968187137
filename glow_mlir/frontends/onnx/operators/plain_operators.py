"""The importers of plain operators, derived from the operator map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from xdsl.ir import SSAValue
from xdsl.irdl import OptionalDef, VariadicDef

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import PLAIN_OPERATORS, PlainOperator
from glow_mlir.ir.registry import onnx_operator

Importer = Callable[[Node], Sequence[SSAValue]]


def plain_importer(row: PlainOperator) -> Importer:
    """The importer of a plain operator: passes operands in order, and converts attributes to properties."""
    operator, attributes = row.operator, row.attributes

    def run(node: Node) -> Sequence[SSAValue]:
        given = node.present()
        operands = [given] if _takes_a_list(operator) else given
        return node.emit_all(operator, *operands, **attributes.import_from(node))

    return run


@cache
def _takes_a_list(operator: type[HighOp]) -> bool:
    """Whether an operator's only operand is variadic."""
    (_, first), *rest = operator.get_irdl_definition().operands
    return isinstance(first, VariadicDef) and not isinstance(first, OptionalDef) and not rest


for _row in PLAIN_OPERATORS.values():
    onnx_operator(_row.kind, since=_row.since)(plain_importer(_row))
