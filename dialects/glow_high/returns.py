"""The terminator of a function that is written with arguments."""

from __future__ import annotations

from typing import Self

from xdsl.irdl import traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.glow_high.base import parse_operands
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation


@op_definition
class ReturnOp(LeanOperation):
    """
    The results of a function that is written with arguments. The parser replaces it by storage: no pass sees it.

    ```mlir
    glow_high.return %1, %2
    ```
    """

    name = "glow_high.return"

    values = var_operand_def(TENSOR)

    traits = traits_def(KnownAttributes())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_operand)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.create(operands=[value for value in parse_operands(parser) if value is not None])
