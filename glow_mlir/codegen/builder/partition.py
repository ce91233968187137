"""The steps of a loop that a function runs if its instruction is partitioned."""

from __future__ import annotations

from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Partition:
    """
    Some of `parts` slices of the steps along an axis: that of number `part`, or those from there up to `until`; all
    steps if `part` is `None`.
    """

    part: Value | None = None
    parts: int = 1
    until: Value | None = None

    def of(self, count: Index) -> tuple[Index, Index]:
        """The first of `count` steps in the slices, and the one after the last; 0 and `count` if it has all steps."""
        if self.part is None:
            return 0, count
        until = self.part + 1 if self.until is None else self.until
        if count == self.parts:
            return self.part, until
        return self.part * count // self.parts, until * count // self.parts

    def within(self, total: Index, first: Index, count: Index) -> tuple[Index, Index]:
        """
        The steps of the slices of `total` steps that are among the `count` from `first` on, counted from there; maybe
        none.
        """
        begin, end = self.of(total)
        if self.part is None or isinstance(begin, int) or isinstance(end, int):
            return 0, count
        operators = begin.operators
        return operators.max(begin - first, 0), operators.min(end - first, count)

    @property
    def is_all(self) -> bool:
        """Whether the slice has all steps."""
        return self.part is None


ALL = Partition()
"""The slice of a function that runs a whole instruction."""
