"""What editors show about operations, from their definitions: documentation, operands, attributes and results."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OpDef,
    OptOperandDef,
    OptResultDef,
    ParamAttrConstraint,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
    VarOperandDef,
    VarResultDef,
)
from xdsl.traits import SymbolOpInterface

from glow_mlir.dialects.operand_types import TensorConstraint

SEGMENTS = frozenset({"operandSegmentSizes", "resultSegmentSizes"})
"""Attributes that nobody writes in custom form."""

MOST_ALTERNATIVES = 6
"""Kinds of types that are listed; those of more are left out."""


def operation_class(name: str, context: Context) -> type[Operation] | None:
    """The class of an operation, or `None` where there is none of that name."""
    return context.get_optional_op(name)


def definition_of(kind: type[Operation] | None) -> OpDef | None:
    """The declared operands, attributes and results; `None` for an operation that declares none."""
    return kind.get_irdl_definition() if kind is not None and issubclass(kind, IRDLOperation) else None


def defines_symbol(name: str, context: Context) -> bool:
    """Whether operations of that name define a symbol."""
    kind = operation_class(name, context)
    return name.endswith("func") if kind is None else kind.has_trait(SymbolOpInterface, value_if_unregistered=False)


def attribute_names(name: str, context: Context) -> dict[str, str]:
    """The attributes that an operation declares, with what they are."""
    definition = definition_of(operation_class(name, context))
    if definition is None:
        return {}
    declared = {**definition.properties, **definition.attributes}
    return {name: kind_of(item.constr) for name, item in declared.items() if name not in SEGMENTS}


def operation_names(dialect: str, context: Context) -> list[str]:
    """The names of all operations of a dialect; none where there is no such dialect."""
    found = context.get_optional_dialect(dialect)
    return [] if found is None else sorted(op.name for op in found.operations)


def summary(name: str, context: Context) -> str:
    """The first paragraph of an operation's documentation, in one line."""
    kind = operation_class(name, context)
    text = "" if kind is None else _docstring(kind)
    return " ".join(text.partition("\n\n")[0].split())


def documentation(kind: type[Operation]) -> str:
    """Everything about an operation, as Markdown."""
    parts = [f"**{kind.name}**", _docstring(kind)]
    if (definition := definition_of(kind)) is not None:
        optional = (OptOperandDef, OptResultDef)
        variadic = (VarOperandDef, VarResultDef)
        for title, items in (("Operands", definition.operands), ("Results", definition.results)):
            rows = [
                (name, _count(isinstance(item, optional), isinstance(item, variadic)), kind_of(item.constr))
                for name, item in items
            ]
            parts.append(_listed(title, rows))
        given = definition.properties | definition.attributes
        rows = [
            (name, _count(type(item).__name__.startswith("Opt"), False), kind_of(item.constr))
            for name, item in given.items()
            if name not in SEGMENTS
        ]
        parts.insert(3, _listed("Attributes", rows))
        parts.append(_listed("Regions", [(name, "", "") for name, _ in definition.regions]))
    return "\n\n".join(part for part in parts if part)


def _docstring(kind: type[Operation]) -> str:
    """An operation's own documentation; that of xDSL's base class says nothing about it."""
    return inspect.cleandoc(kind.__doc__ or "") if "__doc__" in vars(kind) else ""


def _count(optional: bool, variadic: bool) -> str:
    return "any number" if variadic else "optional" if optional else ""


def _listed(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """A titled list of names with what is said about each; empty without any."""
    lines = [
        f"- `{name}`{': ' if count or kind else ''}{', '.join(filter(None, (count, kind)))}"
        for name, count, kind in rows
    ]
    return "\n".join([f"{title}:", "", *lines]) if lines else ""


def kind_of(constraint: AttrConstraint | RangeConstraint) -> str:
    """What a constraint accepts, in words; empty where it accepts anything, or too many kinds to list."""
    match constraint:
        case RangeLengthConstraint():
            return kind_of(constraint.constraint)
        case RangeOf():
            return kind_of(constraint.constr)
        case VarConstraint():
            return kind_of(constraint.constraint)
        case MessageConstraint():
            return kind_of(constraint.constr)
        case TensorConstraint():
            return _tensor(constraint)
        case AnyOf():
            alternatives = constraint.attr_constrs
            return " or ".join(map(kind_of, alternatives)) if len(alternatives) <= MOST_ALTERNATIVES else ""
        case BaseAttr():
            return _attribute_name(constraint.attr)
        case ParamAttrConstraint():
            return _attribute_name(constraint.base_attr)
        case EqAttrConstraint():
            return f"`{constraint.attr}`"
        case AnyAttr() | _:
            return ""


def _tensor(constraint: TensorConstraint) -> str:
    axes = f", {constraint.least} axes or more" if constraint.least else ""
    if constraint.least == constraint.most:
        axes = f", {constraint.least} {'axis' if constraint.least == 1 else 'axes'}"
    return f"tensor of {constraint.noun}{axes}"


def _attribute_name(kind: type[Attribute]) -> str:
    """An attribute's name in MLIR, or that of its class where it has none."""
    return f"`{getattr(kind, 'name', kind.__name__)}`"
