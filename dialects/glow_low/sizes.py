"""The instruction that binds a symbol to a number which is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, prop_def, traits_def

from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.dialects.symbol_binding import BindingEffect, SymbolBinding
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class BindSymbolOp(Instruction, SymbolBinding):
    """
    Bind a symbol in the sizes of later instructions to the only element of `count`, clamped to the symbol's range.

    It needs no kernel: the entry function keeps the numbers of symbols and passes them to later kernels.

    ```mlir
    glow_low.bind_symbol @in %count {symbol = #glow.sizes<[found], found = 0 to 6>}
    ```
    """

    name = "glow_low.bind_symbol"
    NEEDS_KERNEL: ClassVar[bool] = False
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"count": Qualifier.IN}

    count = operand_def(BUFFER)
    symbol = prop_def(SizesAttr)

    traits = traits_def(BindingEffect())

    @classmethod
    def to(cls, symbol: SizesAttr, count: SSAValue, location: LocationAttr | None = None) -> BindSymbolOp:
        """Bind a symbol to a number."""
        return cls.of(count, properties={"symbol": symbol}, location=location)

    def verify_(self) -> None:
        self.verify_binding()
