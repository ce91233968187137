"""`verify-lowered`: from here on the backend executes every operator."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.ir.locations import described
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.transforms.checked_options import BackendPass


@dataclass(frozen=True)
class VerifyLoweredPass(BackendPass):
    """Raise one `UnsupportedOperatorsError` that lists every operator which `backend` does not execute."""

    name = "verify-lowered"

    backend: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_backend(self.backend)
        unsupported = [
            (f"{inner.name} : {', '.join(map(str, inner.result_types))}", described(inner.location))
            for function in high_functions(op)
            for inner in operations(function)
            if isinstance(inner, HighOp) and not target.supports(inner)
        ]
        if unsupported:
            raise UnsupportedOperatorsError(unsupported, by=f"the backend '{self.backend}'")
