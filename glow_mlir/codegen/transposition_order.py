"""The order in which squares of a large transposition are visited, so that lines of the cache are used while there."""

from __future__ import annotations

import math

from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


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
    def of(machine: Target, rows: int, size: int, into: int, out_of: int, moved: int) -> Walk:
        """
        The order for squares of `rows` elements of `size` bytes, where `moved` bytes are read and written.

        `into` and `out_of` are the distances of lines of the target, and of the source, in elements.
        """
        costs = kernel_costs(machine)
        if moved > machine.l3_bytes:
            return Walk(rows, costs.far_block)
        # A way of the first cache is a page: lines that are as far apart, or a multiple, share a set.
        way = machine.page_bytes
        sets = way // math.gcd(out_of * size, way)
        if sets >= costs.few_sets:
            return Walk(rows, costs.spread_block)
        line = max(rows, machine.line_bytes // size)
        shared = line * math.gcd(into * size, way) // way
        is_far = abs(into) * size >= way
        block = costs.far_block if is_far else max(line, min(costs.near_block, line * sets))
        return Walk(rows if shared > costs.shared_lines else line, block)
