"""`verify-selected`: verify that every instruction has a kernel with consistent parameters."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.backends.interface import backend_of
from glow_mlir.dialects.collapsed_layers import collapsed_layers
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.dialects.scalar_parameters import may_be_parameter, parameter_number, parameters
from glow_mlir.errors import UnsupportedOperatorsError
from glow_mlir.ir.checks import require_at
from glow_mlir.ir.locations import described, source_location
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifySelectedPass(ModulePass):
    """
    Raise one `UnsupportedOperatorsError` that lists all instructions without a kernel; or a `ModelError` for the first
    one whose kernel does not execute it, whose tiles, packed operands, tasks or scratch do not match the kernel, or
    whose scalar parameters are invalid, or for layers that `collapse-layers` erased and `expand-layers` has not added.
    """

    name = "verify-selected"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require_at(op, not collapsed_layers(op), "it lacks layers that were erased (run 'expand-layers')")
        programs = [(function, _instructions(function)) for function in low_functions(op)]
        missing = [
            inner for _, instructions in programs for inner in instructions if inner.properties.get("kernel") is None
        ]
        if missing:
            listed = [(inner.name, described(inner)) for inner in missing]
            raise UnsupportedOperatorsError(listed, file=source_location(missing[0]), by="kernel selection")
        for function, instructions in programs:
            backend = backend_of(function)
            for inner in instructions:
                backend.check_selected(inner, function.target)
                _check_parameters(inner)


def _check_parameters(op: Instruction) -> None:
    """Verify that scalar parameters are numbered from 0, and that each is of a kind that code takes as a parameter."""
    found = parameters(op)
    require_at(op, all(map(may_be_parameter, found)), "a constant is a scalar parameter that cannot be one")
    numbers = [parameter_number(constant) for constant in found]
    require_at(op, numbers == list(range(len(found))), f"its scalar parameters are numbered {numbers}")


def _instructions(function: FuncOp) -> list[Instruction]:
    """The instructions of a function, loops included."""
    found = operations(function)
    return [inner for inner in found if isinstance(inner, Instruction) and inner.NEEDS_KERNEL]
