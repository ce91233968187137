"""The instructions of `glow_low`: its own, and those of operators, each derived on first use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.ir import Operation

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction, derive_instruction
from glow_mlir.dialects.glow_low.host import CallOp, RecordEventOp, TransferOp, WaitEventOp
from glow_mlir.dialects.glow_low.loop import LoopOp, WindowOp
from glow_mlir.dialects.glow_low.memory import AllocOp, CopyOp, DeallocOp, FillOp, FuncOp, ViewOp, WeightOp
from glow_mlir.dialects.glow_low.packing import PackOp
from glow_mlir.dialects.glow_low.sizes import BindSymbolOp
from glow_mlir.dialects.glow_low.stack import StackOp

OWN: Sequence[type[Operation]] = (
    *(AllocOp, BindSymbolOp, CopyOp, DeallocOp, FillOp, FuncOp, IfOp, LoopOp, StackOp, ViewOp, WeightOp, WindowOp),
    *(PackOp, YieldOp),
    *(CallOp, RecordEventOp, TransferOp, WaitEventOp),
)
"""The ops of memory, loops, stacks and host programs, which are not derived from operators."""


@cache
def instruction_of(operator: type[HighOp]) -> type[DerivedInstruction]:
    """The instruction of an operator of `glow_high`."""
    return derive_instruction(operator)
