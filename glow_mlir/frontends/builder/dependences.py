"""Dependences of values on inputs and constants."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.frontends.builder.forward_analysis import analyzed
from glow_mlir.ir.traversal import subtree

Roots = frozenset[SSAValue]
"""Values that depend on no others: results of operations without operands, and block arguments."""


class Dependences:
    """The roots of the values of one function; each value is analyzed once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Roots] = {}

    def roots(self, value: SSAValue) -> Roots:
        """The roots of a value, including constants; inside a loop, also arguments of its body."""
        return analyzed(value, self._known, _operands, self._transfer)

    def _transfer(self, value: SSAValue) -> Roots:
        """The roots of a value whose operands are analyzed."""
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
    """The values that a value is computed from, including those used in the regions of its operation."""
    if isinstance(value.owner, Block):
        return []
    return list(dict.fromkeys(item for op in subtree(value.owner) for item in op.operands))
