"""The order in which squares of a large transposition are visited, so that lines of the cache are used while there."""

from __future__ import annotations

import math
from dataclasses import dataclass

CACHE_LINE = 64
"""Bytes of a cache line."""

PAGE = 4096
"""Bytes of a page, and of a way of the first cache: lines that are as far apart, or a multiple, share a set."""

FEW_SETS = 8
"""Sets of the cache that hold the lines of the source when these get in each other's way."""

MOST_SHARED = 4
"""Lines of a strip that may share a set of the cache."""

NEAR, FAR, SPREAD = 64, 128, 1024
"""Elements of the longest block: of targets with several lines a page, of others, and of sources in many sets."""


@dataclass(frozen=True)
class Walk:
    """
    Strips of `strip` lines of the target go along `block` of its elements, then the next strips do, then the next
    elements.

    A block bounds how many lines and pages of the source the strips keep coming back to. Where these share few sets of
    the cache they are gone when the next strip comes, which wants what is left of them: strips are then as high as a
    line is long, unless that is in vain because the lines of the target share sets themselves. Blocks are longer where
    each line of the target is on a page of its own. What exceeds all caches goes at the pace of its pages. Measured on
    Zen 4 with 64 Ki to 16 Mi floats, strips of 8 and 16, and blocks of 16 to 128 and without end.
    """

    strip: int
    block: int

    @staticmethod
    def of(rows: int, size: int, into: int, out_of: int, beyond_caches: bool) -> Walk:
        """
        The order for squares of `rows` elements of `size` bytes.

        `into` and `out_of` are the distances of lines of the target, and of the source, in elements.
        """
        if beyond_caches:
            return Walk(rows, FAR)
        sets = PAGE // math.gcd(out_of * size, PAGE)
        if sets >= FEW_SETS:
            return Walk(rows, SPREAD)
        line = max(rows, CACHE_LINE // size)
        shared = line * math.gcd(into * size, PAGE) // PAGE
        is_far = abs(into) * size >= PAGE
        return Walk(rows if shared > MOST_SHARED else line, FAR if is_far else max(line, min(NEAR, line * sets)))
