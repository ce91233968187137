"""`remove-unused-storage`: erase constants that no function reads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.storage import ConstantOp
from glow_mlir.transforms.rewriting import functions


@dataclass(frozen=True)
class RemoveUnusedStoragePass(ModulePass):
    """Erase constants that no function mentions (the storage half of Glow's DCE); placeholders are the ABI and stay."""

    name = "remove-unused-storage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        used: set[str] = set()
        for function in functions(op):
            for inner in function.walk():
                symbol = inner.properties.get("symbol")
                if isinstance(symbol, SymbolRefAttr):
                    used.add(symbol.string_value())
        block = op.body.block
        for storage in list(block.ops):
            if isinstance(storage, ConstantOp) and storage.sym_name.data not in used:
                block.erase_op(storage)
