"""`verify-lowered`: verify that the backend executes every operator."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.symbol_binding import used_symbols
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.ir.locations import described, source_location
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.run_time_sizes import hint_at
from glow_mlir.ir.traversal import operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifyLoweredPass(ModulePass):
    """Raise one `UnsupportedOperatorsError` that lists all operators, branches or loops that the backend lacks."""

    name = "verify-lowered"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in high_functions(op):
            backend = get_backend(function.target.backend)
            asked = (item for item in operations(function) if isinstance(item, HighOp | ControlFlowOp))
            refused = [item for item in asked if not backend.supports(item)]
            listed = [(f"{item.name} : {', '.join(map(str, item.result_types))}", described(item)) for item in refused]
            by, location = f"the backend '{backend.name}'", source_location(refused[0]) if refused else ""
            if any(map(used_symbols, refused)):
                by, hint = f"{by} with these sizes", hint_at(refused[0])
                raise UnsupportedOperatorsError(listed, file=location, by=by, hint=hint)
            if refused:
                raise UnsupportedOperatorsError(listed, file=location, by=by)
