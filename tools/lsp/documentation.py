"""Information about operations by name: classes, symbols, attributes, proposals."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import SymbolOpInterface

from glow_mlir.tools.lsp.operation_documents import SEGMENTS, described, summary


def operation_class(name: str, context: Context) -> type[Operation] | None:
    """The class of an operation, or `None` for an unknown name."""
    return context.get_optional_op(name)


def defines_symbol(name: str, context: Context) -> bool:
    """Whether operations of that name define a symbol."""
    kind = operation_class(name, context)
    return (
        name == "module" or name.endswith("func")
        if kind is None
        else kind.has_trait(SymbolOpInterface, value_if_unregistered=False)
    )


def attribute_names(name: str, context: Context) -> dict[str, str]:
    """The attributes that an operation declares, with their descriptions."""
    kind = operation_class(name, context)
    if kind is None or not issubclass(kind, IRDLOperation):
        return {}
    definition = kind.get_irdl_definition()
    declared = {**definition.properties, **definition.attributes}
    return {name: described(item.constr) for name, item in declared.items() if name not in SEGMENTS}


def operation_names(dialect: str, context: Context) -> list[str]:
    """The names of all operations of a dialect; none where there is no such dialect."""
    found = context.get_optional_dialect(dialect)
    return [] if found is None else sorted(op.name for op in found.operations)


def proposal(name: str, context: Context) -> str:
    """The description of a proposed operation; empty for an unknown one."""
    kind = operation_class(name, context)
    return "" if kind is None else summary(kind)
