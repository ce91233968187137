"""`verify-lowered`: from here on the backend executes every operator."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import has_static_shape
from glow_mlir.dialects.sizes import HINT
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.ir.locations import described
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations


@dataclass(frozen=True)
class VerifyLoweredPass(ModulePass):
    """Raise one `UnsupportedOperatorsError` that lists every operator which the backend does not execute."""

    name = "verify-lowered"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in high_functions(op):
            backend = get_backend(function.target.backend)
            refused = [op for op in operations(function) if isinstance(op, HighOp) and not backend.supports(op)]
            unsupported = [
                (f"{inner.name} : {', '.join(map(str, inner.result_types))}", described(inner.location))
                for inner in refused
            ]
            by = f"the backend '{backend.name}'"
            if any(not all(map(has_static_shape, (*inner.operands, *inner.results))) for inner in refused):
                raise UnsupportedOperatorsError(unsupported, by=f"{by} with these sizes", hint=HINT)
            if refused:
                raise UnsupportedOperatorsError(unsupported, by=by)
