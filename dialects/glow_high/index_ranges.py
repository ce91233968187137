"""Operands whose numbers say where to read or write: which numbers they may have."""

from __future__ import annotations

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class IndexRange:
    """
    Numbers of an integer operand that lead somewhere: each is from `least` on, and below `bound`.

    They are the columns of the last axis from `columns[0]` up to, but not, `columns[1]`; without it all. With
    `ascends` along an axis, a number from 0 on is larger than its own index there, so that no way from one number to
    the next is a circle. With `covers`, the numbers of the only column are the ends of ranges that follow one another,
    the first from 0 on, and the last up to the largest that is allowed.
    """

    operand: str
    least: int
    bound: Size
    columns: tuple[int, int] | None = None
    ascends: int | None = None
    covers: bool = False
