"""Maps of ONNX's attributes and our properties, which importers and exporters read in either direction."""

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

    `default` is what the standard says of an absent attribute, `None` where it has to be there.
    """

    name: str
    property: str
    default: Any
    read: Callable[[Node, str, Any], AttributeValue]
    """Gives the value of the attribute of a node, by its name and default."""
    write: Callable[[Any], int | float | str]
    """Gives the value that a property is as ONNX has it."""


def integer(name: str, default: int | None = None, *, to: str = "") -> MappedAttribute:
    """An integer; the property is called as the attribute, or as said by `to`."""
    return MappedAttribute(name, to or name, default, Node.int, properties.integer)


def flag(name: str, default: bool = False, *, to: str = "") -> MappedAttribute:
    """A truth value, which ONNX has as an integer."""
    return MappedAttribute(name, to or name, default, Node.flag, lambda value: int(properties.flag(value)))


def real(name: str, default: float | None = None, *, to: str = "") -> MappedAttribute:
    """A float."""
    return MappedAttribute(name, to or name, default, Node.float, lambda value: float(properties.number(value)))


def word(name: str, default: str | None = None, *, to: str = "") -> MappedAttribute:
    """A string that is a word."""
    return MappedAttribute(name, to or name, default, Node.text, properties.text)


class AttributeMap:
    """Attributes of one operator, each with its property."""

    def __init__(self, *attributes: MappedAttribute) -> None:
        self.attributes = attributes

    def import_from(self, node: Node) -> dict[str, AttributeValue]:
        """The properties that a node's attributes are; raises `ModelError` where one is missing or of another type."""
        return {item.property: item.read(node, item.name, item.default) for item in self.attributes}

    def export_from(self, op: HighOp) -> dict[str, int | float | str]:
        """The attributes that an operator's properties are."""
        return {item.name: item.write(getattr(op, item.property)) for item in self.attributes}


NO_ATTRIBUTES = AttributeMap()
