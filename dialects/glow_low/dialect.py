"""The dialect `glow_low`: memory, stacks, and one derived instruction for each operator of `glow_high`."""

from __future__ import annotations

from xdsl.ir import Dialect

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_low.instructions import OWN, instruction_of

GLOW_LOW = Dialect(
    "glow_low",
    [
        *OWN,
        *(instruction_of(kind) for kind in operators() if issubclass(kind, HighOp) and kind.HAS_INSTRUCTION),
    ],
    [],
)
"""The paper's low-level IR: instructions on addresses."""
