"""Sparse forward analysis: the fact about a value follows from the facts about its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.base import HighOp

Fact = TypeVar("Fact")


def analyzed(
    value: SSAValue,
    known: dict[SSAValue, Fact],
    operands: Callable[[SSAValue], Sequence[SSAValue]],
    transfer: Callable[[SSAValue], Fact],
) -> Fact:
    """
    The fact about a value; `transfer` computes it once the facts about its `operands` are `known`.

    All facts are added to `known`, and each value is analyzed once. There is no recursion, so graphs may be deep.
    """
    pending = [value]
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
        elif missing := [item for item in operands(current) if item not in known]:
            pending += missing
        else:
            known[current] = transfer(current)
    return known[value]


def operands_of(value: SSAValue) -> Sequence[SSAValue]:
    """The operands of the operator that defines a value; empty for any other value."""
    return value.owner.operands if isinstance(value.owner, HighOp) else ()
