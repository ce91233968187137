"""
Walks over the program of a function: its operations, and those in the regions of branches and loops.

Regions form a tree, with the block of the function as its root. Bodies of scalar operations, as in `generic`, stacks
and epilogues, belong to their operation and are not part of it. A walk visits each operation once; the current
operation may be erased or moved, and others inserted around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FunctionOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.support.identity import is_kind

Scope = FunctionOp | Block
"""A function, or one block of it."""


class Span(NamedTuple):
    """
    The execution interval of an operation, in steps of a walk: from `begin` up to `end`, which follows all nested
    operations.
    """

    begin: int
    end: int


def inner_blocks(op: Operation) -> Iterator[Block]:
    """The blocks inside an operation that are part of the program, in order."""
    if op.regions and not is_kind(type(op), (HighOp, Instruction)):
        for region in op.regions:
            yield from region.blocks


def own_operations(scope: Scope) -> Iterator[Operation]:
    """The operations of a block, in order, without nested ones."""
    op = _block_of(scope).first_op
    while op is not None:
        following = op.next_op
        yield op
        op = following


def own_operations_backward(scope: Scope) -> Iterator[Operation]:
    """The operations of a block in reverse, without nested ones."""
    op = _block_of(scope).last_op
    while op is not None:
        previous = op.prev_op
        yield op
        op = previous


def storage_read(function: FunctionOp) -> Iterator[str]:
    """The names of the storage that the operations of a function mention, once for each operation."""
    for op in operations(function):
        symbol = op.properties.get("symbol")
        if isinstance(symbol, SymbolRefAttr):
            yield symbol.string_value()


def operations(scope: Scope) -> Iterator[Operation]:
    """All operations in program order; a branch or loop comes before nested operations."""
    op = _block_of(scope).first_op
    while op is not None:
        following = op.next_op
        yield op
        if op.regions:
            for block in inner_blocks(op):
                yield from operations(block)
        op = following


def all_operations(scope: Scope) -> list[Operation]:
    """All operations in program order, as a snapshot: faster than a walk that allows changes."""
    found: list[Operation] = []
    _collect(_block_of(scope), found)
    return found


def _collect(block: Block, found: list[Operation]) -> None:
    op = block.first_op
    while op is not None:
        found.append(op)
        if op.regions:
            for inner in inner_blocks(op):
                _collect(inner, found)
        op = op.next_op


def subtree(op: Operation) -> Iterator[Operation]:
    """An operation, then nested ones in program order."""
    yield op
    for block in inner_blocks(op):
        yield from operations(block)


def operations_backward(scope: Scope) -> Iterator[Operation]:
    """All operations in reverse program order; a branch or loop comes after nested operations."""
    op = _block_of(scope).last_op
    while op is not None:
        previous = op.prev_op
        if op.regions:
            for block in reversed(list(inner_blocks(op))):
                yield from operations_backward(block)
        yield op
        op = previous


def blocks(scope: Scope) -> list[Block]:
    """The blocks of the region tree, each before those inside it, in the order of the program."""
    found = [_block_of(scope)]
    for op in all_operations(scope):
        if op.regions:
            found += inner_blocks(op)
    return found


def blocks_inside_out(scope: Scope) -> list[Block]:
    """The blocks of the region tree, each after those inside it."""
    return blocks(scope)[::-1]


def spans(scope: Scope) -> dict[Operation, Span]:
    """The execution interval of each operation: intervals of operations that may be active at the same time overlap."""
    found: dict[Operation, Span] = {}
    _number(_block_of(scope), 0, found)
    return found


def _number(block: Block, position: int, found: dict[Operation, Span]) -> int:
    """
    Assign intervals to the operations of a block, starting at a position; returns the position after the last one.
    """
    for op in own_operations(block):
        begin, position = position, position + 1
        if op.regions:
            for inner in inner_blocks(op):
                position = _number(inner, position, found)
        found[op] = Span(begin, position)
    return position


def within(block: Block, op: Operation) -> Operation | None:
    """The operation of a block that is or encloses `op`; `None` if it is elsewhere."""
    around: Operation | None = op
    while around is not None and around.parent is not block:
        around = around.parent_op()
    return around


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in a region of an op."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        around = block.parent_op()
        if around is op:
            return True
        block = None if around is None else around.parent
    return False


def function_of(op: Operation) -> FunctionOp:
    """The function that an operation is in."""
    around = op.parent_op()
    while not isinstance(around, FunctionOp):
        assert around is not None, f"{op.name} is in no function"
        around = around.parent_op()
    return around


def _block_of(scope: Scope) -> Block:
    return scope if isinstance(scope, Block) else scope.block
