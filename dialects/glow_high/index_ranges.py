"""Ranges of valid numbers for operands that are indices."""

from __future__ import annotations

from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size


@dataclass(frozen=True)
class IndexRange:
    """
    The valid numbers of an integer operand: each is at least `least` and below `bound`.

    They are in the columns `columns[0]` up to, but excluding, `columns[1]` of the last axis; without `columns`, in all.
    With `ascends` along an axis, a number that is not negative is larger than its own index there, so that following
    the numbers never leads into a cycle. With `covers`, the numbers of the only column are the ends of consecutive
    ranges; the first range starts at 0, and the last one ends at the largest allowed number.
    """

    operand: str
    least: int
    bound: Size
    columns: tuple[int, int] | None = None
    ascends: int | None = None
    covers: bool = False
