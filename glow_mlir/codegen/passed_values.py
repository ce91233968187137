"""The values that a structured function passes to the arguments of regions and to the results of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

Passed = Iterator[tuple[SSAValue, SSAValue]]
"""An argument of a region or a result, and one of its possible values."""


def passed_values(op: Operation) -> Passed:
    """
    The values that a loop or branch passes on: pairs of each argument and result with each of its possible values.

    The index of a `scf.for` is not among them, since it is computed. Other operations pass nothing on.
    """
    rule = _RULES.get(type(op))
    if rule is not None:
        yield from rule(op)


def _for(op: Operation) -> Passed:
    body = op.regions[0].block
    for given in (op.operands[3:], _last_operands(body)):
        yield from zip(body.args[1:], given, strict=True)
        yield from zip(op.results, given, strict=True)


def _while(op: Operation) -> Passed:
    before, body = (region.block for region in op.regions)
    for given in (op.operands, _last_operands(body)):
        yield from zip(before.args, given, strict=True)
    passed = _last_operands(before)[1:]
    yield from zip(body.args, passed, strict=True)
    yield from zip(op.results, passed, strict=True)


def _if(op: Operation) -> Passed:
    for region in op.regions:
        for block in region.blocks:
            yield from zip(op.results, _last_operands(block), strict=True)


_RULES: Mapping[type[Operation], Callable[[Operation], Passed]] = {
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.IfOp: _if,
}


def _last_operands(block: Block) -> Sequence[SSAValue]:
    """The operands of a block's terminator."""
    end = block.last_op
    assert end is not None
    return end.operands
