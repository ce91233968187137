"""Dependences of values: which inputs and constants decide what a value is."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.frontends.builder.forward_analysis import analyzed
from glow_mlir.ir.traversal import subtree

Roots = frozenset[SSAValue]
"""Values that depend on no others: results of operations without operands, and arguments of blocks."""


class Dependences:
    """The roots of the values of one function; each value is looked at once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Roots] = {}

    def roots(self, value: SSAValue) -> Roots:
        """What a value depends on, constants among it; an argument of a body where it is inside of a loop."""
        return analyzed(value, self._known, _operands, self._transfer)

    def _transfer(self, value: SSAValue) -> Roots:
        """What a value depends on whose operands are known."""
        operands = _operands(value)
        if not operands:
            return frozenset((value,))
        found = Roots().union(*(self._known[item] for item in operands))
        inner = {block for op in subtree(_owner(value)) for region in op.regions for block in region.blocks}
        return frozenset(root for root in found if root.owner not in inner) if inner else found


def _owner(value: SSAValue) -> Operation:
    assert not isinstance(value.owner, Block)
    return value.owner


def _operands(value: SSAValue) -> list[SSAValue]:
    """What a value is computed of, also inside of the operation that gives it."""
    if isinstance(value.owner, Block):
        return []
    return list(dict.fromkeys(item for op in subtree(value.owner) for item in op.operands))
