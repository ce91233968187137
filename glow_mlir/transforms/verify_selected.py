"""`verify-selected`: from here on every instruction names its kernel."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.loop import flattened
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.transforms.locations import described
from glow_mlir.transforms.rewriting import low_functions


@dataclass(frozen=True)
class VerifySelectedPass(ModulePass):
    """Raise one `UnsupportedOperatorsError` that lists every instruction without a kernel."""

    name = "verify-selected"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        missing = [
            (inner.name, described(inner.location))
            for function in low_functions(op)
            for inner in flattened(function.block)
            if isinstance(inner, Instruction)
            and not isinstance(inner, DeallocOp)
            and inner.properties.get("kernel") is None
        ]
        if missing:
            raise UnsupportedOperatorsError(missing, by="kernel selection")
