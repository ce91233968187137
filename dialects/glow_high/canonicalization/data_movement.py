"""Rewrites of operators that move elements: consecutive ones are merged, and those of constants are removed."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, SliceOp, TileOp, TransposeOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import flag, floats, ints, number, text
from glow_mlir.dialects.shapes import shape_of


def splat_number(value: SSAValue | None) -> float | int | None:
    """The number that all elements of `value` equal, or `None` if that is unknown."""
    return number(value.owner.value) if value is not None and isinstance(value.owner, SplatOp) else None


class MovementOfSplat(RewritePattern):
    """Replace a movement of equal elements by a splat of another shape."""

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
    """Compose two permutations of axes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, TransposeOp):
            first = ints(inner.permutation)
            both = [first[axis] for axis in ints(op.permutation)]
            rewriter.replace(op, TransposeOp.make(inner.input, permutation=both, location=op.location))


class TransposeOfUnitAxes(RewritePattern):
    """Replace a transpose that keeps the order of all axes longer than one by a reshape, which costs nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /) -> None:
        shape = shape_of(op.input)
        longer = [axis for axis in ints(op.permutation) if shape[axis] != 1]
        if longer == sorted(longer) and not op.is_identity():
            rewriter.replace(op, ReshapeOp.make(op.input, shape=shape_of(op.result), location=op.location))


class ExpandOfExpand(RewritePattern):
    """Only the last shape counts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ExpandOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, ExpandOp):
            rewriter.replace(op, ExpandOp.make(inner.input, shape=op.shape, location=op.location))


class TileOfUnitAxes(RewritePattern):
    """Replace a tile along axes of size one by an expand, which elementwise operators absorb."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TileOp, rewriter: PatternRewriter, /) -> None:
        repeated = [size for size, count in zip(shape_of(op.input), ints(op.repeats), strict=True) if count != 1]
        if repeated and all(size == 1 for size in repeated):
            rewriter.replace(op, ExpandOp.make(op.input, shape=shape_of(op.result), location=op.location))


class TileOfTile(RewritePattern):
    """Multiply the repetitions of two tiles."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TileOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, TileOp):
            repeats = [one * other for one, other in zip(ints(inner.repeats), ints(op.repeats), strict=True)]
            rewriter.replace(op, TileOp.make(inner.input, repeats=repeats, location=op.location))


class ResizeOfUnitAxes(RewritePattern):
    """Replace a resize of axes of size one by an expand: there is nothing to interpolate."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ResizeOp, rewriter: PatternRewriter, /) -> None:
        given, shape = shape_of(op.input), shape_of(op.result)
        kept = tuple(1 if before == 1 else after for before, after in zip(given, shape, strict=True))
        repeats = text(op.mode) in ("nearest", "linear") and text(op.coordinates) != "tf_crop_and_resize"
        if kept == shape or 0 in shape or not repeats or flag(op.exclude_outside) or flag(op.antialias):
            return
        properties = {**op.properties, "shape": to_attribute(kept)}
        if op.scales is not None:
            scales = [1.0 if size == 1 else scale for size, scale in zip(given, floats(op.scales), strict=True)]
            properties["scales"] = to_attribute(scales)
        resized = ResizeOp.inferred([op.input], properties, op.location)
        rewriter.replace(op, [resized, ExpandOp.make(resized, shape=shape, location=op.location)])


MOVEMENT_OF_SPLAT = MovementOfSplat()

PATTERNS: Mapping[type[HighOp], tuple[RewritePattern, ...]] = {
    ExpandOp: (MOVEMENT_OF_SPLAT, ExpandOfExpand()),
    ReshapeOp: (MOVEMENT_OF_SPLAT, ReshapeOfReshape()),
    ResizeOp: (ResizeOfUnitAxes(),),
    SliceOp: (MOVEMENT_OF_SPLAT,),
    TileOp: (MOVEMENT_OF_SPLAT, TileOfUnitAxes(), TileOfTile()),
    TransposeOp: (MOVEMENT_OF_SPLAT, TransposeOfTranspose(), TransposeOfUnitAxes()),
}
"""Operator → its patterns, besides those of `slices`."""
