"""Run-time sizes as values that other operators compute with."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import LocationAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from glow_mlir.dialects.attribute_syntax import parse_properties, print_properties
from glow_mlir.dialects.glow_high.base import HighOp, parse_defined_value, split_known, visible_properties
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import sizes, sizes_prop
from glow_mlir.dialects.shapes import tensor
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.dialects.symbol_binding import BindingEffect, SymbolBinding
from glow_mlir.support.symbols import Symbol, SymbolicSize
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class ShapeOp(HighOp):
    """
    The `sizes`, known at run time only, as a vector of i64 (ONNX Shape).

    ```mlir
    %0 = glow_high.shape {sizes = #glow.sizes<[batch, 4], batch = 1 to 8>} : tensor<2xi64>
    ```
    """

    name = "glow_high.shape"
    NOTATION: ClassVar[str] = "-> result[*]"

    sizes = sizes_prop()
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor((len(sizes(self.sizes)),), i64),)


@op_definition
class BindSymbolOp(SymbolBinding):
    """
    Bind a symbol in the sizes of later ops to the only element of `count`, clamped to the symbol's range.

    ```mlir
    glow_high.bind_symbol %count {symbol = #glow.sizes<[found], found = 0 to 6>}
    %0 = glow_high.shape {sizes = #glow.sizes<[found, 2], found = 0 to 6>} : tensor<2xi64>
    ```
    """

    name = "glow_high.bind_symbol"

    count = operand_def(TENSOR)
    symbol = prop_def(SizesAttr)

    traits = traits_def(BindingEffect(), KnownAttributes())

    @classmethod
    def to(cls, symbol: Symbol, count: SSAValue, location: LocationAttr | None = None) -> BindSymbolOp:
        """Bind a symbol to a number."""
        properties = {"symbol": SizesAttr((SymbolicSize.of(symbol),))}
        return cls.create(operands=[count], properties=properties, location=location)

    def verify_(self) -> None:
        self.verify_binding()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.count)
        print_properties(printer, visible_properties(self))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        count = parse_defined_value(parser)
        known, rest = split_known(parse_properties(parser), cls.get_irdl_definition().properties)
        return cls.create(operands=[count], properties=known, attributes=rest)
