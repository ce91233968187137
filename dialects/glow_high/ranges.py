"""Ranges that operators give their results: between which numbers all elements lie."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Range:
    """All elements that are not NaN lie in [`low`, `high`]; a zero of either sign is 0."""

    low: float = -math.inf
    high: float = math.inf

    def within(self, low: float, high: float) -> bool:
        """Whether the range lies in [low, high]."""
        return low <= self.low and self.high <= high

    def join(self, other: Range) -> Range:
        """The smallest range that has both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def sign(self) -> Range:
        """What is left of the range where only signs are sure."""
        return Range(0.0 if self.low >= 0 else -math.inf, 0.0 if self.high <= 0 else math.inf)


ANY = Range()
POSITIVE = Range(0.0, math.inf)
NEGATIVE = Range(-math.inf, 0.0)
UNIT = Range(0.0, 1.0)
SIGNED_UNIT = Range(-1.0, 1.0)
ZERO = Range(0.0, 0.0)


def joined(ranges: Sequence[Range]) -> Range:
    """The smallest range that has all of at least one."""
    found = ranges[0]
    for other in ranges[1:]:
        found = found.join(other)
    return found


def above_zero(range_: Range) -> Range:
    """The range behind a function that leaves positive numbers as they are, and does anything to negative ones."""
    return range_ if range_.low >= 0 else ANY
