"""
The order in which squares of a large transposition are visited, so that cache lines are used while they are cached.
"""

from __future__ import annotations

import math

from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Walk:
    """
    Strips of `strip` lines of the target run along `block` of its elements, then the next strips do, then the next
    elements follow.

    A block bounds the lines and pages of the source that the strips return to. If these share few cache sets, they are
    evicted before the next strip uses the rest of them. Strips are then as high as a line is long, unless that does not
    help because the lines of the target share sets themselves. Blocks are longer if each line of the target is on a
    separate page. Transpositions beyond all caches are bound by their pages. Measured on Zen 4 with 64 Ki to 16 Mi
    floats, strips of 8 and 16, and blocks of 16 to 128 and without limit.
    """

    strip: int
    block: int

    @staticmethod
    def of(machine: Target, rows: int, size: int, into: int, out_of: int, moved: int) -> Walk:
        """
        The order for squares of `rows` elements of `size` bytes, if `moved` bytes are read and written.

        `into` and `out_of` are the distances of lines of the target, and of the source, in elements.
        """
        costs = kernel_costs(machine)
        if moved > machine.l3_bytes:
            return Walk(rows, costs.far_block)
        # A way of the L1 cache is a page: lines whose distance is a multiple of that share a set.
        way = machine.page_bytes
        sets = way // math.gcd(out_of * size, way)
        if sets >= costs.few_sets:
            return Walk(rows, costs.spread_block)
        line = max(rows, machine.line_bytes // size)
        shared = line * math.gcd(into * size, way) // way
        is_far = abs(into) * size >= way
        block = costs.far_block if is_far else max(line, min(costs.near_block, line * sets))
        return Walk(rows if shared > costs.shared_lines else line, block)
