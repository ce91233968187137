"""Which inputs of the model a value depends on, for operands that fix shapes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.ir.traversal import subtree

Roots = frozenset[SSAValue]
"""Values that depend on no others: results of operations without operands, and arguments of blocks."""


class Influences:
    """The roots of the values of one function; each value is looked at once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Roots] = {}

    def roots(self, value: SSAValue) -> Roots:
        """What a value depends on, constants among it; an argument of a body where it is inside of a loop."""
        pending = [value]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            operands = _operands(current)
            if missing := [item for item in operands if item not in self._known]:
                pending += missing
            else:
                self._known[current] = self._of(current, operands)
        return self._known[value]

    def _of(self, value: SSAValue, operands: Sequence[SSAValue]) -> Roots:
        """What a value depends on whose operands are known."""
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
