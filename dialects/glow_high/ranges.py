"""Value ranges of results: lower and upper bounds of all elements."""

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
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def sign(self) -> Range:
        """The widest range with the same possible signs."""
        return Range(0.0 if self.low >= 0 else -math.inf, 0.0 if self.high <= 0 else math.inf)


ANY = Range()
POSITIVE = Range(0.0, math.inf)
NEGATIVE = Range(-math.inf, 0.0)
UNIT = Range(0.0, 1.0)
SIGNED_UNIT = Range(-1.0, 1.0)
ZERO = Range(0.0, 0.0)


def joined(ranges: Sequence[Range]) -> Range:
    """The smallest range that contains all ranges, of which there is at least one."""
    found = ranges[0]
    for other in ranges[1:]:
        found = found.join(other)
    return found


def above_zero(range_: Range) -> Range:
    """The result range of a function that keeps positive numbers and maps negative ones to any number."""
    return range_ if range_.low >= 0 else ANY
