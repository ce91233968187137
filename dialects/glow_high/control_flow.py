"""Branches and loops over operators, and what their regions yield."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from xdsl.dialects.builtin import LocationAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from glow_mlir.dialects.control_flow import ControlFlowOp, verify_scalar
from glow_mlir.dialects.glow_high.base import (
    SEGMENTS,
    HighOp,
    parse_defined_value,
    parse_optional_value,
    to_segments,
)
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.shapes import require, tensor
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation

INDEX = tensor((), i64)
"""The type of the index of a trip."""


@op_definition
class YieldOp(LeanOperation):
    """
    The terminator of a region of a branch or loop; its operands are the values for the enclosing op.

    ```mlir
    glow_high.yield %0, %1
    ```
    """

    name = "glow_high.yield"

    values = var_operand_def(TENSOR)

    traits = traits_def(IsTerminator(), Pure(), KnownAttributes())

    @classmethod
    def of(cls, values: Sequence[SSAValue], location: LocationAttr | None = None) -> YieldOp:
        """Yield `values`."""
        return cls.create(operands=values, location=location)

    def verify_(self) -> None:
        require(isinstance(self.parent_op(), RegionOp | None), "only a region of a branch or loop yields")

    def print(self, printer: Printer) -> None:
        if self.values:
            printer.print_string(" ")
            printer.print_list(self.values, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_optional_undelimited_comma_separated_list(
            lambda: parse_optional_value(parser), lambda: parse_defined_value(parser)
        )
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=values or [], attributes=attributes)


class RegionOp(ControlFlowOp):
    """
    An op whose regions hold operators, like a function, and end with a yield.

    They read values of enclosing regions, constants and inputs. State is only read and saved in the function itself, so
    that an op with regions has no effects.
    """

    values = var_result_def(TENSOR)

    irdl_options = SEGMENTS
    traits = traits_def(RecursiveMemoryEffect(), KnownAttributes())

    def yielded(self, region: Region) -> tuple[SSAValue, ...]:
        """The values that a region yields."""
        last = region.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    def verify_regions(self, noun: str, expected: Sequence[Attribute]) -> None:
        """Check the op's parent, the ops in its regions, and that regions yield values of the `expected` types."""
        require(isinstance(self.parent_op(), FuncOp | RegionOp | None), f"{noun} belongs in a function of operators")
        for region in self.regions:
            block = region.block
            require(isinstance(block.last_op, YieldOp), f"a region of {noun} ends with what it yields")
            types = [value.type for value in self.yielded(region)]
            listed = ", ".join(map(str, expected)) or "nothing"
            require(types == list(expected), f"a region yields {', '.join(map(str, types)) or 'nothing'}, not {listed}")
            for op in block.ops:
                self._verify_held(op, block)

    def _verify_held(self, op: Operation, block: Block) -> None:
        if isinstance(op, GetOp):
            require(op.mutable is None, f"state @{op.storage_name} is read in the function itself")
            return
        fits = isinstance(op, HighOp | RegionOp | BindSymbolOp) or op is block.last_op
        require(fits, f"a region of operators does not hold {op.name}")

    def print_types(self, printer: Printer) -> None:
        """Print the types of the results."""
        printer.print_op_attributes(self.attributes)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(range(len(self.results)), lambda position: self.print_type(printer, position))

    def print_type(self, printer: Printer, position: int) -> None:
        """Print the type of a result and its keywords."""
        printer.print_attribute(self.results[position].type)


def _parse_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation(":") is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


@op_definition
class IfOp(RegionOp):
    """
    A branch: the values of the first region if the only element of `condition` holds, otherwise those of the second.

    ```mlir
    %1 = glow_high.if %condition {
      %0 = glow_high.relu %x : tensor<4xf32>
      glow_high.yield %0
    } else {
      glow_high.yield %x
    } : tensor<4xf32>
    ```
    """

    name = "glow_high.if"

    condition = operand_def(TENSOR)
    then_region = region_def("single_block")
    else_region = region_def("single_block")

    @classmethod
    def of(
        cls,
        condition: SSAValue,
        types: Sequence[Attribute],
        regions: Iterable[Region],
        location: LocationAttr | None = None,
    ) -> IfOp:
        """The branch between two regions that yield values of those types."""
        properties = {"operandSegmentSizes": to_segments([1])}
        return cls.create(
            operands=[condition],
            result_types=types,
            properties=properties,
            regions=list(regions),
            location=location,
        )

    def verify_(self) -> None:
        verify_scalar(self.condition, i1, "the condition")
        for region in self.regions:
            require(not region.block.args, "a region of a branch takes nothing")
        self.verify_regions("a branch", self.result_types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region, print_entry_block_args=False)
        printer.print_string(" else ")
        printer.print_region(self.else_region, print_entry_block_args=False)
        self.print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parse_defined_value(parser)
        regions = [parser.parse_region()]
        parser.parse_keyword("else")
        regions.append(parser.parse_region())
        attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=[condition],
            result_types=_parse_types(parser),
            properties={"operandSegmentSizes": to_segments([1])},
            attributes=attributes,
            regions=regions,
        )
