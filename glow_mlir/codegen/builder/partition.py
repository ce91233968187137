"""Which steps of a loop a function runs where its instruction is cut into parts."""

from __future__ import annotations

from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Partition:
    """One of `parts` shares of the steps along an axis, that of number `part`; all steps where that is `None`."""

    part: Value | None = None
    parts: int = 1

    def of(self, count: Index) -> tuple[Index, Index]:
        """The first of `count` steps, and the one behind the last; as `count` is where it is all of them."""
        if self.part is None:
            return 0, count
        if count == self.parts:
            return self.part, self.part + 1
        return self.part * count // self.parts, (self.part + 1) * count // self.parts

    def within(self, total: Index, first: Index, count: Index) -> tuple[Index, Index]:
        """The range, counted from `first`, of what the share has of `count` of `total` steps; it may be empty."""
        begin, end = self.of(total)
        if self.part is None or isinstance(begin, int) or isinstance(end, int):
            return 0, count
        operators = begin.operators
        return operators.max(begin - first, 0), operators.min(end - first, count)

    def size(self, count: int) -> int:
        """How many of `count` steps are one share, at most."""
        return -(-count // self.parts)

    @property
    def is_all(self) -> bool:
        """Whether it is all steps."""
        return self.part is None


ALL = Partition()
"""The share of a function that runs a whole instruction."""
