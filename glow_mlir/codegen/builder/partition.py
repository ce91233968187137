"""The slice of a loop's steps that a function runs if its instruction is partitioned."""

from __future__ import annotations

from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Partition:
    """One of `parts` slices of the steps along an axis, that of number `part`; all steps if that is `None`."""

    part: Value | None = None
    parts: int = 1

    def of(self, count: Index) -> tuple[Index, Index]:
        """The first of `count` steps in the slice, and the one after the last; 0 and `count` if it has all steps."""
        if self.part is None:
            return 0, count
        if count == self.parts:
            return self.part, self.part + 1
        return self.part * count // self.parts, (self.part + 1) * count // self.parts

    def within(self, total: Index, first: Index, count: Index) -> tuple[Index, Index]:
        """
        The steps of the slice of `total` steps that are among the `count` from `first` on, counted from there; maybe
        none.
        """
        begin, end = self.of(total)
        if self.part is None or isinstance(begin, int) or isinstance(end, int):
            return 0, count
        operators = begin.operators
        return operators.max(begin - first, 0), operators.min(end - first, count)

    def size(self, count: int) -> int:
        """The maximum number of steps in a slice of `count` steps."""
        return -(-count // self.parts)

    @property
    def is_all(self) -> bool:
        """Whether the slice has all steps."""
        return self.part is None


ALL = Partition()
"""The slice of a function that runs a whole instruction."""
