"""Rewrites of operators that move elements: merged where two follow each other, gone where they move constants."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import integer, ints, number, text
from glow_mlir.dialects.shapes import normalize_axis, shape_of, size_of


def splat_number(value: SSAValue | None) -> float | int | None:
    """The number that all elements of `value` are, or `None` where that is not known."""
    return number(value.owner.value) if value is not None and isinstance(value.owner, SplatOp) else None


class MovementOfSplat(RewritePattern):
    """Moving equal elements gives equal elements: a splat of another shape."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        source = op.operands[0].owner
        if isinstance(source, SplatOp):
            shape = shape_of(op.results[0])
            rewriter.replace(op, SplatOp.make(value=source.value, shape=shape, location=op.location))


class ReshapeOfReshape(RewritePattern):
    """Only the last shape counts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, ReshapeOp):
            rewriter.replace(op, ReshapeOp.make(inner.input, shape=op.shape, location=op.location))


class TransposeOfTranspose(RewritePattern):
    """Two orders of axes make one."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, TransposeOp):
            first = ints(inner.permutation)
            both = [first[axis] for axis in ints(op.permutation)]
            rewriter.replace(op, TransposeOp.make(inner.input, permutation=both, location=op.location))


class TransposeOfUnitAxes(RewritePattern):
    """A transpose that leaves the order of all longer axes is a reshape, which costs nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /) -> None:
        shape = shape_of(op.input)
        longer = [axis for axis in ints(op.permutation) if shape[axis] != 1]
        if longer == sorted(longer) and not op.is_identity():
            rewriter.replace(op, ReshapeOp.make(op.input, shape=shape_of(op.result), location=op.location))


class SliceOfSlice(RewritePattern):
    """A part of a part is a part."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if not isinstance(inner, SliceOp) or not size_of(op.result):
            return
        ranges = [
            whole[part.start : part.stop if part.stop >= 0 else None : part.step]
            for whole, part in zip(inner.ranges(), op.ranges(), strict=True)
        ]
        bounds = {
            "starts": [taken.start for taken in ranges],
            "ends": [max(taken.stop, -1) for taken in ranges],
            "steps": [taken.step for taken in ranges],
        }
        rewriter.replace(op, SliceOp.make(inner.input, **bounds, location=op.location))


class PadOfPad(RewritePattern):
    """Two borders of zeros make one."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if not isinstance(inner, PadOp):
            return
        fills = [(splat_number(pad.value) if pad.value is not None else 0, text(pad.mode)) for pad in (op, inner)]
        if fills[0] == fills[1] and fills[0][0] is not None and fills[0][1] == "constant":
            pads = [sum(pair) for pair in zip(ints(inner.pads), ints(op.pads), strict=True)]
            rewriter.replace(op, PadOp.make(inner.input, op.value, pads=pads, location=op.location))


class ExpandOfExpand(RewritePattern):
    """Only the last shape counts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ExpandOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, ExpandOp):
            rewriter.replace(op, ExpandOp.make(inner.input, shape=op.shape, location=op.location))


class TileOfUnitAxes(RewritePattern):
    """A tile along axes of size one is an expand, which elementwise operators absorb."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TileOp, rewriter: PatternRewriter, /) -> None:
        repeated = [size for size, count in zip(shape_of(op.input), ints(op.repeats), strict=True) if count != 1]
        if repeated and all(size == 1 for size in repeated):
            rewriter.replace(op, ExpandOp.make(op.input, shape=shape_of(op.result), location=op.location))


class ConcatOfEmpty(RewritePattern):
    """Operands without elements add nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /) -> None:
        parts = [part for part in op.parts if size_of(part)]
        if parts and len(parts) < len(op.parts):
            rewriter.replace(op, ConcatOp.make(parts, axis=integer(op.axis), location=op.location))


class GatherOfOne(RewritePattern):
    """A gather with one known index is a slice."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /) -> None:
        index = splat_number(op.indices)
        if index is None or size_of(op.indices) != 1:
            return
        shape = shape_of(op.input)
        axis = normalize_axis(integer(op.axis), len(shape))
        place = int(index) + (shape[axis] if index < 0 else 0)
        place = min(max(place, 0), shape[axis] - 1)
        starts = [place if position == axis else 0 for position in range(len(shape))]
        ends = [place + 1 if position == axis else size for position, size in enumerate(shape)]
        part = SliceOp.make(op.input, starts=starts, ends=ends, location=op.location)
        rewriter.replace(op, [part, ReshapeOp.make(part, shape=shape_of(op.result), location=op.location)])


PATTERNS: Mapping[type[HighOp], tuple[RewritePattern, ...]] = {
    ConcatOp: (ConcatOfEmpty(),),
    ExpandOp: (MovementOfSplat(), ExpandOfExpand()),
    GatherOp: (GatherOfOne(),),
    PadOp: (PadOfPad(),),
    ReshapeOp: (MovementOfSplat(), ReshapeOfReshape()),
    SliceOp: (MovementOfSplat(), SliceOfSlice()),
    TileOp: (MovementOfSplat(), TileOfUnitAxes()),
    TransposeOp: (MovementOfSplat(), TransposeOfTranspose(), TransposeOfUnitAxes()),
}
"""Operator → its patterns."""
