"""Maps between ONNX's attributes and our properties, for both import and export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glow_mlir.dialects import properties
from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class MappedAttribute:
    """
    An attribute of ONNX's, and the property with the same meaning.

    `default` is the standard's value for an absent attribute, `None` if the attribute is required.
    """

    name: str
    property: str
    default: Any
    read: Callable[[Node, str, Any], AttributeValue]
    """Returns the property's value, given the node and the attribute's name and default."""
    write: Callable[[Any], int | float | str]
    """Returns the attribute's value, given the property."""


def integer(name: str, default: int | None = None, *, to: str = "") -> MappedAttribute:
    """An integer; the property has the attribute's name unless `to` gives another one."""
    return MappedAttribute(name, to or name, default, Node.int, properties.integer)


def flag(name: str, default: bool = False, *, to: str = "") -> MappedAttribute:
    """A truth value, stored as an integer in ONNX."""
    return MappedAttribute(name, to or name, default, Node.flag, lambda value: int(properties.flag(value)))


def real(name: str, default: float | None = None, *, to: str = "") -> MappedAttribute:
    """A float."""
    return MappedAttribute(name, to or name, default, Node.float, lambda value: float(properties.number(value)))


def word(name: str, default: str | None = None, *, to: str = "") -> MappedAttribute:
    """A string."""
    return MappedAttribute(name, to or name, default, Node.text, properties.text)


class AttributeMap:
    """Attributes of one operator, each with its property."""

    def __init__(self, *attributes: MappedAttribute) -> None:
        self.attributes = attributes

    def import_from(self, node: Node) -> dict[str, AttributeValue]:
        """Convert a node's attributes to properties; raises `ModelError` for a missing one or one of a wrong type."""
        return {item.property: item.read(node, item.name, item.default) for item in self.attributes}

    def export_from(self, op: HighOp) -> dict[str, int | float | str]:
        """Convert an operator's properties to attributes."""
        return {item.name: item.write(getattr(op, item.property)) for item in self.attributes}


NO_ATTRIBUTES = AttributeMap()
