"""
What JAX writes of Shardy's dialect `sdy` into programs for one device: attributes and the mesh of devices.

Attributes are kept as text, since nothing here reads them.
"""

from __future__ import annotations

from typing import Any, Self, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, Dialect, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface

from glow_mlir.xdsl_patches.definitions import op_definition


class _TextAttr(Data[str]):
    """An attribute that is kept as its text: `#sdy.NAME<TEXT>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        # xDSL reads attributes of unknown dialects so, and names these methods for itself.
        scanner = cast("Any", parser)
        return scanner._parse_dialect_symbol_body() if scanner._current_token.text == "<" else ""

    def print_parameter(self, printer: Printer) -> None:
        if self.data:
            printer.print_string(f"<{self.data}>")


def _text(name: str) -> type[Attribute]:
    """The attribute `#sdy.NAME`."""
    title = "".join(part.title() for part in name.split("_"))
    members = {"name": f"sdy.{name}", "__doc__": f"`#sdy.{name}<…>`."}
    return irdl_attr_definition(type(f"{title}Attr", (_TextAttr,), members))


NAMES = (
    "dimension_sharding list_of_axis_ref_lists manual_axes mesh op_sharding_rule propagation_edges sharding"
    " sharding_origins sharding_per_value sharding_rule"
)
"""The attributes of `sdy`."""

ATTRIBUTES = {name: _text(name) for name in NAMES.split()}
"""Name → attribute of `sdy`."""


@op_definition
class MeshOp(IRDLOperation):
    """
    Names the devices among which a program is divided.

    ```mlir
    sdy.mesh @mesh = <["x"=2]>
    ```
    """

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(AnyAttr())

    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        kind: Any = ATTRIBUTES["mesh"]
        properties = {"sym_name": name, "mesh": kind(kind.parse_parameter(parser))}
        return cls.create(properties=properties, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        cast("_TextAttr", self.mesh).print_parameter(printer)
        printer.print_op_attributes(self.attributes)


@op_definition
class ShardingConstraintOp(IRDLOperation):
    """
    A tensor with a wish how it is divided; on one device, the tensor.

    ```mlir
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}]> : tensor<2xui32>
    ```
    """

    name = "sdy.sharding_constraint"

    input = operand_def(BaseAttr(TypeAttribute))
    sharding = prop_def(AnyAttr())
    result = result_def(BaseAttr(TypeAttribute))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        kind: Any = ATTRIBUTES["sharding"]
        sharding = kind(kind.parse_parameter(parser))
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        (value,) = parser.resolve_operands([operand], [type_], parser.pos)
        return cls.create(operands=[value], result_types=[type_], properties={"sharding": sharding})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        printer.print_string(" ")
        cast("_TextAttr", self.sharding).print_parameter(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)


SDY = Dialect("sdy", [MeshOp, ShardingConstraintOp], [*ATTRIBUTES.values()])
"""Shardy's notation of how tensors are divided among devices."""
