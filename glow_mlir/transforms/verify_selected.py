"""`verify-selected`: from here on every instruction names its kernel, and all that is written on it fits together."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp, FuncOp
from glow_mlir.errors import ModelError, UnsupportedOperatorsError
from glow_mlir.ir.locations import described
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import position_of
from glow_mlir.ir.traversal import operations
from glow_mlir.transforms.checked_options import BackendPass


@dataclass(frozen=True)
class VerifySelectedPass(BackendPass):
    """
    Raise one `UnsupportedOperatorsError` that lists every instruction without a kernel; or a `ModelError` for the first
    one whose kernel does not execute it, or whose tiles, packed operands, parts or scratch are not those of its kernel.

    What fits depends on `backend` and `target`, and on the threads that a function says it is for.
    """

    name = "verify-selected"

    backend: str = "cpu"
    target: str = "host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        backend = get_backend(self.backend)
        programs = [(function, _instructions(function)) for function in low_functions(op)]
        missing = [
            (inner.name, described(inner.location))
            for _, instructions in programs
            for inner in instructions
            if inner.properties.get("kernel") is None
        ]
        if missing:
            raise UnsupportedOperatorsError(missing, by="kernel selection")
        for function, instructions in programs:
            threads = _threads(function, backend)
            for inner in instructions:
                backend.check_selected(inner, self.target, threads)


def _instructions(function: FuncOp) -> list[Instruction]:
    """What a function does, in its loops too."""
    found = operations(function)
    return [inner for inner in found if isinstance(inner, Instruction) and not isinstance(inner, DeallocOp)]


def _threads(function: FuncOp, backend: Backend) -> int:
    """For how many threads a function is; raises `ModelError` where it cannot be."""
    found = function.attributes.get("threads")
    if found is None:
        return 1
    if isinstance(found, IntegerAttr) and 1 <= found.value.data <= backend.MOST_THREADS:
        return found.value.data
    raise ModelError(
        f"@{function.sym_name.data} cannot be for {found} threads",
        file=position_of(function.location),
        hint=f"they are 1 to {backend.MOST_THREADS}",
    )
