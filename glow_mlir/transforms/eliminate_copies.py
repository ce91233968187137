"""`eliminate-copies`: let producers write where a copy would carry their result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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
    (part of Glow's ShareBuffers and copy elimination). What writes the allocation again behind the copy keeps it.
    """

    name = "eliminate-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            block = function.block
            declared = Counter(op.storage_name for op in block.ops if isinstance(op, WeightOp))
            positions = {op: position for position, op in enumerate(block.ops)}
            for candidate in list(block.ops):
                if isinstance(candidate, CopyOp):
                    eliminate(candidate, declared, positions)


def eliminate(copy: CopyOp, declared: Mapping[str, int], positions: dict[Operation, int]) -> None:
    """Remove one copy where it is safe; `declared` counts the declarations of each storage."""
    target, source = copy.target, root_of(copy.source)
    weight, allocation = target.owner, source.owner
    block = copy.parent_block()
    assert block is not None
    if not isinstance(weight, WeightOp) or not isinstance(allocation, AllocOp):
        return
    if not is_only_use(copy, weight, declared) or not is_last_content(copy, source, positions):
        return
    if positions[weight] > positions[allocation]:
        weight.detach()
        block.insert_op_before(weight, allocation)
        positions[weight] = positions[allocation]
    if target.type == source.type:
        replacement = target
    else:
        view = ViewOp.of(target, allocation.result.type, allocation.location)
        view.result.name_hint = source.name_hint
        block.insert_op_before(view, allocation)
        replacement = view.result
    block.erase_op(copy)
    for use in list(source.uses):
        if isinstance(use.operation, DeallocOp):
            block.erase_op(use.operation)
    source.replace_all_uses_with(replacement)
    block.erase_op(allocation)


def is_only_use(copy: CopyOp, weight: WeightOp, declared: Mapping[str, int]) -> bool:
    """Whether nothing but the copy reads or writes the storage behind a weight."""
    return declared[weight.storage_name] == 1 and weight.result.has_one_use() and weight.result is copy.target


def is_last_content(copy: CopyOp, source: SSAValue, positions: Mapping[Operation, int]) -> bool:
    """Whether the copy takes a whole allocation, and nothing writes it any more."""
    is_whole = size_of(copy.source.type) == size_of(source.type)
    if not (is_whole and is_contiguous(copy.source) and is_contiguous(source)):
        return False
    return not any(
        positions[op] > positions[copy] and any(q.writes and root_of(value) is source for q, value in op.uses())
        for op in each_user(source)
    )


def each_user(buffer: SSAValue) -> Iterator[Instruction]:
    """Every instruction that uses an allocation or weight, also through views; deallocations excluded."""
    for use in buffer.uses:
        if isinstance(use.operation, ViewOp):
            yield from each_user(use.operation.result)
        elif isinstance(use.operation, Instruction) and not isinstance(use.operation, DeallocOp):
            yield use.operation
