"""`remove-unused-storage`: erase unused reads, declarations and constants."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.storage import ConstantOp, FunctionOp, GetOp
from glow_mlir.dialects.glow_low.memory import WeightOp
from glow_mlir.ir import statistics
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations, storage_read
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class RemoveUnusedStoragePass(ModulePass):
    """
    Erase reads and declarations of storage without uses, then constants that no function mentions (the storage half of
    Glow's DCE). Placeholders stay: they are the ABI.
    """

    name = "remove-unused-storage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        used: set[str] = set()
        for function in functions(op):
            erase_unused_reads(function)
            used.update(storage_read(function))
        for storage in list(op.body.block.ops):
            if isinstance(storage, ConstantOp) and storage.sym_name.data not in used:
                op.body.block.erase_op(storage)
                statistics.count("constants erased")


def erase_unused_reads(function: FunctionOp) -> None:
    """Erase the reads and declarations of storage in a function that have no uses."""
    for op in operations(function):
        if isinstance(op, GetOp | WeightOp) and not op.result.uses:
            op.detach()
            op.erase()
            statistics.count("declarations erased")
