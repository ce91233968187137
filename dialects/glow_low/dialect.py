"""The dialect `glow_low`: memory, stacks, and one derived instruction for each operator of `glow_high`."""

from __future__ import annotations

from xdsl.ir import Dialect

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.dialect import GLOW_HIGH
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction, derive_instruction
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import AllocOp, CopyOp, DeallocOp, FillOp, FuncOp, ViewOp, WeightOp
from glow_mlir.dialects.glow_low.packing import PackOp
from glow_mlir.dialects.glow_low.sizes import BindSymbolOp
from glow_mlir.dialects.glow_low.stack import StackOp

INSTRUCTIONS: dict[type[HighOp], type[DerivedInstruction]] = {
    operator: derive_instruction(operator) for operator in GLOW_HIGH.operations if issubclass(operator, HighOp)
}
"""Operator of `glow_high` → its instruction."""

GLOW_LOW = Dialect(
    "glow_low",
    [
        *(AllocOp, BindSymbolOp, CopyOp, DeallocOp, FillOp, FuncOp, IfOp, LoopOp, StackOp, ViewOp, WeightOp, WindowOp),
        *(PackOp, YieldOp),
        *INSTRUCTIONS.values(),
    ],
    [],
)
"""The paper's low-level IR: instructions on addresses."""
