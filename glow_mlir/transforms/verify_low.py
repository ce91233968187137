"""`verify-low`: from here on there are only addresses, every read is of something written, every buffer ends."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, WeightOp, root_of
from glow_mlir.transforms.rewriting import high_functions, low_functions


@dataclass(frozen=True)
class VerifyLowPass(ModulePass):
    """
    Check a module of instructions: no function of `glow_high`, no tensor value, no read of an allocation before a write,
    no use after `dealloc`, one `dealloc` an allocation, no write to constants and inputs.
    """

    name = "verify-low"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if left := high_functions(op):
            raise VerifyException(f"@{left[0].sym_name.data} is still a function of glow_high")
        for function in low_functions(op):
            check_function(function)


def check_function(function: FuncOp) -> None:
    """Check one function; raises `VerifyException` at the first fault."""
    written: set[SSAValue] = set()
    dead: set[SSAValue] = set()
    allocated: set[SSAValue] = set()
    for op in function.block.ops:
        for value in (*op.operands, *op.results):
            if isinstance(value.type, TensorType):
                raise VerifyException(f"{op.name} still has a tensor")
        if isinstance(op, AllocOp):
            allocated.add(op.result)
        if not isinstance(op, Instruction):
            continue
        for name, qualifier, value in op.named_uses():
            root = root_of(value)
            _check_use(op, name, qualifier, root, dead, written)
        written.update(root_of(value) for qualifier, value in op.uses() if qualifier.writes)
        if isinstance(op, DeallocOp):
            dead.add(op.buffer)
    if leaked := allocated - dead:
        raise VerifyException(f"{len(leaked)} allocations are never deallocated, the first is {next(iter(leaked))}")


def _check_use(
    op: Instruction, name: str, qualifier: Qualifier, root: SSAValue, dead: set[SSAValue], written: set[SSAValue]
) -> None:
    owner = root.owner
    if root in dead:
        raise VerifyException(f"{op.name} uses @{qualifier.value} {name} after its dealloc")
    if isinstance(owner, AllocOp) and qualifier.reads and root not in written:
        raise VerifyException(f"{op.name} reads @{qualifier.value} {name} before anything writes it")
    if isinstance(owner, WeightOp) and qualifier.writes and owner.mutable is None:
        raise VerifyException(f"{op.name} writes @{qualifier.value} {name}, which is constant")
