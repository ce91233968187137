"""`eliminate-copies`: let producers write where a copy would carry their result."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import (
    AllocOp,
    CopyOp,
    DeallocOp,
    ViewOp,
    WeightOp,
    is_contiguous,
    root_of,
)
from glow_mlir.dialects.shapes import size_of
from glow_mlir.transforms.rewriting import low_functions


@dataclass(frozen=True)
class EliminateCopiesPass(ModulePass):
    """
    Remove copies of an allocation to an output that nothing else uses: the allocation becomes a view of the output
    (part of Glow's ShareBuffers and copy elimination).
    """

    name = "eliminate-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, CopyOp):
                    eliminate(candidate)


def eliminate(copy: CopyOp) -> None:
    """Remove one copy where it is safe."""
    target, source = copy.target, root_of(copy.source)
    allocation = source.owner
    if not isinstance(target.owner, WeightOp) or not isinstance(allocation, AllocOp):
        return
    whole = is_contiguous(copy.source) and size_of(copy.source.type) == size_of(source.type)
    if not target.has_one_use() or not whole:
        return
    block = copy.parent_block()
    assert block is not None
    if target.type == source.type:
        replacement = target
    else:
        view = ViewOp.of(target, allocation.result.type, allocation.location)  # pyright: ignore[reportArgumentType]
        view.result.name_hint = source.name_hint
        block.insert_op_before(view, allocation)
        replacement = view.result
    block.erase_op(copy)
    for use in list(source.uses):
        if isinstance(use.operation, DeallocOp):
            block.erase_op(use.operation)
    source.replace_all_uses_with(replacement)
    block.erase_op(allocation)


def users_of(buffer: SSAValue) -> list[Operation]:
    """Every instruction that uses an allocation or weight, also through views; deallocations excluded."""
    found: list[Operation] = []
    for use in buffer.uses:
        if isinstance(use.operation, ViewOp):
            found += users_of(use.operation.result)
        elif isinstance(use.operation, Instruction) and not isinstance(use.operation, DeallocOp):
            found.append(use.operation)
    return found
