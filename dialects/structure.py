"""Keys that are equal for bodies of code that differ only in the names of their values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Block, Operation, Region, SSAValue


def structure_of(blocks: Iterable[Block], constant: Callable[[ConstantOp], Hashable]) -> Hashable:
    """
    A key shared by blocks that compute the same from the same types; `constant` gives the key of a constant.

    Values from outside the blocks are identified by their first use, arguments of blocks by their number.
    """
    numbers: dict[SSAValue, int] = {}
    return tuple(_block(block, numbers, constant) for block in blocks)


def blocks_of(regions: Iterable[Region]) -> Iterable[Block]:
    """The blocks of regions, in order."""
    return (block for region in regions for block in region.blocks)


def _block(block: Block, numbers: dict[SSAValue, int], constant: Callable[[ConstantOp], Hashable]) -> Hashable:
    for argument in block.args:
        numbers[argument] = len(numbers)
    types = tuple(argument.type for argument in block.args)
    return types, tuple(_operation(op, numbers, constant) for op in block.ops)


def _operation(op: Operation, numbers: dict[SSAValue, int], constant: Callable[[ConstantOp], Hashable]) -> Hashable:
    operands = tuple(numbers.setdefault(operand, len(numbers)) for operand in op.operands)
    inner = tuple(_block(block, numbers, constant) for block in blocks_of(op.regions))
    for result in op.results:
        numbers[result] = len(numbers)
    if isinstance(op, ConstantOp):
        return ConstantOp, constant(op)
    declared = (*op.properties.items(), *op.attributes.items())
    return type(op), operands, tuple(result.type for result in op.results), declared, inner
