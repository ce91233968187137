"""Regions of instructions: the base of `glow_low`'s branches and loops, and branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from xdsl.dialects.builtin import LocationAttr, i1
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import operand_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect

from glow_mlir.dialects.control_flow import ControlFlowOp, verify_scalar
from glow_mlir.dialects.glow_high.base import parse_defined_value, to_segments
from glow_mlir.dialects.glow_low.base import BUFFER, QualifiedOp, Qualifier
from glow_mlir.dialects.glow_low.memory import AddressOp, AllocOp, FuncOp, WeightOp
from glow_mlir.dialects.shapes import require
from glow_mlir.xdsl_patches.definitions import op_definition


class RegionOp(QualifiedOp, ControlFlowOp):
    """
    An op whose regions hold instructions, on buffers of enclosing regions and on buffers of their own.

    A region deallocates the buffers that it allocates, and their content is undefined when it begins. Weights are
    declared in the function itself.
    """

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def verify_regions(self, noun: str) -> None:
        """Check the op's parent and the ops in its regions."""
        is_inside = isinstance(self.parent_op(), FuncOp | RegionOp | None)
        require(is_inside, f"{noun} belongs in a function of instructions, or in a region of one")
        for block in (block for region in self.regions for block in region.blocks):
            for op in block.ops:
                require(not isinstance(op, WeightOp), "a weight is declared in the function itself")
                fits = isinstance(op, AllocOp | AddressOp | QualifiedOp)
                require(fits, f"a region of instructions does not hold {op.name}")


def print_read(printer: Printer, value: SSAValue) -> None:
    """Print an operand that is read, `@in %a`."""
    printer.print_string(f"@{Qualifier.IN.value} ")
    printer.print_ssa_value(value)


def parse_read(parser: Parser) -> SSAValue:
    """Parse what `print_read` prints."""
    value = parse_optional_read(parser)
    return parser.raise_error("what decides is read: use @in") if value is None else value


def parse_optional_read(parser: Parser) -> SSAValue | None:
    """Parse what `print_read` prints, if a qualifier follows."""
    position = parser.pos
    qualifier = parser.parse_optional_symbol_name()
    if qualifier is None:
        return None
    if qualifier.data != Qualifier.IN.value:
        parser.raise_error("what decides is read: use @in", position, parser.pos)
    return parse_defined_value(parser)


@op_definition
class IfOp(RegionOp):
    """
    Execute the first region if the only element of `condition` holds, otherwise the second.

    ```mlir
    glow_low.if @in %condition {
      glow_low.relu @out %y, @in %x
    } else {
      glow_low.neg @out %y, @in %x
    }
    ```
    """

    name = "glow_low.if"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"condition": Qualifier.IN}

    condition = operand_def(BUFFER)
    then_region = region_def("single_block")
    else_region = region_def("single_block")

    @classmethod
    def of(cls, condition: SSAValue, location: LocationAttr | None = None) -> IfOp:
        """A branch with empty regions."""
        regions = [Region(Block()), Region(Block())]
        properties = {"operandSegmentSizes": to_segments([1])}
        return cls.create(operands=[condition], properties=properties, regions=regions, location=location)

    def verify_(self) -> None:
        verify_scalar(self.condition, i1, "the condition")
        for region in self.regions:
            require(not region.block.args, "a region of a branch takes nothing")
        self.verify_regions("a branch")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_read(printer, self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region, print_entry_block_args=False)
        if self.else_region.block.ops:
            printer.print_string(" else ")
            printer.print_region(self.else_region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parse_read(parser)
        regions = [parser.parse_region()]
        regions.append(parser.parse_region() if parser.parse_optional_keyword("else") else Region())
        for region in regions:
            if not region.blocks:
                region.add_block(Block())
        attributes = parser.parse_optional_attr_dict()
        properties = {"operandSegmentSizes": to_segments([1])}
        return cls.create(operands=[condition], properties=properties, attributes=attributes, regions=regions)
