"""What is known of values by what is known of their operands, each value looked at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.ir import SSAValue

Fact = TypeVar("Fact")


def found_out(
    value: SSAValue,
    known: dict[SSAValue, Fact],
    operands: Callable[[SSAValue], Sequence[SSAValue]],
    of: Callable[[SSAValue], Fact],
) -> Fact:
    """
    The fact of a value; `of` finds it out where those of its `operands` are `known`, which gets all that are found.

    It takes no recursion, so that graphs may be deep.
    """
    pending = [value]
    while pending:
        current = pending[-1]
        if current in known:
            pending.pop()
        elif missing := [item for item in operands(current) if item not in known]:
            pending += missing
        else:
            known[current] = of(current)
    return known[value]
