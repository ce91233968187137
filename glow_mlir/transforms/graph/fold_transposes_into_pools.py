"""`fold-transposes-into-pools`: let a pool between two transposes work on images with channels first."""

from __future__ import annotations

from glow_mlir.backends.interface import costs_of
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.pooling import Pool
from glow_mlir.dialects.glow_high.transposition import changed, inverse
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import rank_of, size_along
from glow_mlir.dialects.windows import CHANNELS_FIRST, is_channels_last
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.support.dataclass import dataclass
from glow_mlir.transforms.graph.split_windows import is_split

LONGEST_STRIDE = 2
"""Maximum stride along rows for which vectors of pixels are loaded contiguously."""


class FoldTransposesIntoPool(Pattern):
    """Turn a channels-last pool between a transpose and its inverse into a channels-first pool."""

    @rooted
    def match_and_rewrite(self, op: Pool, rewriter: Rewriter, /) -> None:
        if not is_channels_last(op.layout):
            return
        if not has_long_rows(op, costs_of(rewriter.function.target)):
            return
        before, after = op.input.owner, only_reader(op)
        rank = rank_of(op.input)
        to_last = (0, *range(2, rank), 1)
        if not isinstance(before, TransposeOp) or not op.input.has_one_use() or ints(before.permutation) != to_last:
            return
        if not isinstance(after, TransposeOp) or ints(after.permutation) != inverse(to_last):
            return
        location = fuse_locations([before.location, op.location, after.location])
        pool = type(op).inferred([before.input], changed(op, layout=CHANNELS_FIRST), location)
        rewriter.replace(after, pool)


@dataclass(frozen=True)
class FoldTransposesIntoPoolsPass(PatternPass):
    """
    Replace a pool between inverse transposes without other readers by a channels-first pool.

    Applies if rows of results are long enough for vectors of pixels, and windows are at most two pixels apart along
    them; otherwise vectors over channels are worth both transposes.
    """

    name = "fold-transposes-into-pools"
    WALKS = (Walk((FoldTransposesIntoPool(),)),)


def only_reader(op: Pool) -> object:
    """The only reader of a pool's result, or `None`."""
    uses = list(op.result.uses)
    return uses[0].operation if len(uses) == 1 else None


def has_long_rows(op: Pool, costs: Costs) -> bool:
    """Whether rows of results are long enough for vectors of pixels, or channels few."""
    window, count = op.window(), size_along(op.result, -2)
    if window.strides[-1] > LONGEST_STRIDE or count < costs.pooled_pixels:
        return False
    if not any(window.padding(len(window.kernel) - 1)) or count >= costs.clipped_pooled_pixels:
        return True
    is_worth = count >= costs.channel_lanes or size_along(op.result, -1) < costs.pooled_channels
    return is_worth and is_split(op, costs, is_last=False)
