"""Describe an operation as Markdown: its docstring, and a table of operands, properties, results and regions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.irdl import (
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OptionalDef,
    OptOperandDef,
    OptRegionDef,
    OptResultDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
    VariadicDef,
)

from glow_mlir.dialects.operand_types import TensorConstraint
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.dialects.target import TargetAttr

KINDS: dict[type[Attribute], str] = {
    builtin.ArrayAttr: "array",
    builtin.DenseArrayBase: "integers",
    builtin.DenseIntOrFPElementsAttr: "elements",
    builtin.DictionaryAttr: "dictionary",
    builtin.FloatAttr: "number",
    builtin.IntegerAttr: "integer",
    builtin.MemRefType: "buffer",
    builtin.StringAttr: "string",
    builtin.SymbolRefAttr: "symbol",
    TypeAttribute: "type",
    builtin.UnitAttr: "flag",
    SizesAttr: "sizes",
    TargetAttr: "target",
}
"""Kind of an attribute or type → its name in the text; others keep their own name."""

SEGMENTS = frozenset({"operandSegmentSizes", "resultSegmentSizes"})
"""Properties that only hold the segment sizes of operands or results."""


def operation_document(kind: type[Operation]) -> str:
    """The Markdown text about an operation, without a heading."""
    paragraphs = [_docstring(kind)]
    if issubclass(kind, IRDLOperation) and (rows := list(_rows(kind))):
        paragraphs.append("\n".join(["| | name | what |", "|---|---|---|", *rows]))
    return "\n\n".join(filter(None, paragraphs))


def summary(kind: type[Operation]) -> str:
    """The first sentence of an operation's documentation."""
    paragraph = " ".join(_docstring(kind).partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def _docstring(kind: type[Operation]) -> str:
    """An operation's own docstring, not that of xDSL's base class."""
    return inspect.cleandoc(kind.__doc__ or "") if "__doc__" in vars(kind) else ""


def _rows(kind: type[IRDLOperation]) -> Iterator[str]:
    definition = kind.get_irdl_definition()
    for name, operand in definition.operands:
        yield _row("operand", name, _times(operand), described(operand.constr))
    for name, entry in {**definition.properties, **definition.attributes}.items():
        if name in SEGMENTS:
            continue
        default = "" if entry.default_value is None else f", {str(entry.default_value).partition(' : ')[0]} by default"
        yield _row("property", name, _times(entry), described(entry.constr) + default)
    for name, result in definition.results:
        yield _row("result", name, _times(result), described(result.constr))
    for name, region in definition.regions:
        yield _row("region", name, _times(region), "operations")


def _row(role: str, name: str, times: str, what: str) -> str:
    return f"| {role} | `{name}`{times} | {what.replace('|', chr(92) + '|')} |"


def _times(entry: object) -> str:
    if isinstance(entry, OptionalDef | OptOperandDef | OptResultDef | OptRegionDef):
        return "?"
    return "…" if isinstance(entry, VariadicDef) else ""


def described(constraint: object) -> str:
    """The values that a constraint accepts, in words."""
    match constraint:
        case RangeLengthConstraint():
            return described(constraint.constraint)
        case RangeOf() | MessageConstraint():
            return described(constraint.constr)
        case VarConstraint():
            return described(constraint.constraint)
        case EqAttrConstraint():
            return f"`{constraint.attr}`"
        case ParamAttrConstraint():
            return KINDS.get(constraint.base_attr, constraint.base_attr.__name__)
        case TensorConstraint():
            return f"tensor of {constraint.noun}{_axes(constraint)}"
        case BaseAttr():
            return KINDS.get(constraint.attr, constraint.attr.__name__)
        case AnyOf():
            return " or ".join(map(described, constraint.attr_constrs))
        case AttrConstraint():
            bases = constraint.get_bases() or set()
            return " or ".join(sorted(KINDS.get(base, base.__name__) for base in bases)) or "attribute"
        case _:
            return "any"


def _axes(constraint: TensorConstraint) -> str:
    plural = "axis" if constraint.least == 1 else "axes"
    if constraint.least == constraint.most:
        return f" with {constraint.least} {plural}" if constraint.least else " without axes"
    return f" with {constraint.least} {plural} or more" if constraint.least else ""
