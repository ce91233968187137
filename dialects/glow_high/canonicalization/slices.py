"""Rewrites of slices, concatenations and pads, and of gathers that are slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, ReshapeOp, SliceOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import is_empty, normalize_axis, rank_of, shape_of, size_of


def bounds(ranges: Sequence[range]) -> dict[str, AttributeValue | None]:
    """The properties of a slice that takes those indices along each axis."""
    return {
        "starts": [taken.start for taken in ranges],
        "ends": [max(taken.stop, -1) for taken in ranges],
        "steps": [taken.step for taken in ranges] if any(taken.step != 1 for taken in ranges) else None,
    }


def concat_axis(op: ConcatOp) -> int:
    """The axis of a concatenation, counted from the front."""
    return normalize_axis(integer(op.axis), rank_of(op.result))


class SliceOfSlice(RewritePattern):
    """Compose two slices."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if not isinstance(inner, SliceOp) or not size_of(op.result):
            return
        ranges = [
            whole[part.start : part.stop if part.stop >= 0 else None : part.step]
            for whole, part in zip(inner.ranges(), op.ranges(), strict=True)
        ]
        rewriter.replace(op, SliceOp.make(inner.input, **bounds(ranges), location=op.location))


class SliceOfConcat(RewritePattern):
    """
    Replace a slice of a concatenation by a slice of the operand that contains it (Glow's EliminateConcatSlice).

    If it spans several but not all operands, and is the only use of the concatenation, the other operands are dropped.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /) -> None:
        concat = op.input.owner
        if not isinstance(concat, ConcatOp) or not size_of(op.result):
            return
        axis, ranges = concat_axis(concat), list(op.ranges())
        first, last = sorted((ranges[axis][0], ranges[axis][-1]))
        ends = list(accumulate(shape_of(part)[axis] for part in concat.parts))
        begins = [0, *ends[:-1]]
        chosen = [
            index for index, (begin, end) in enumerate(zip(begins, ends, strict=True)) if begin <= last and first < end
        ]
        if len(chosen) == len(concat.parts) or (len(chosen) > 1 and not concat.result.has_one_use()):
            return
        offset, taken = begins[chosen[0]], ranges[axis]
        ranges[axis] = range(taken.start - offset, max(taken.stop - offset, -1), taken.step)
        if len(chosen) == 1:
            part = concat.parts[chosen[0]]
            rewriter.replace(op, SliceOp.make(part, **bounds(ranges), location=op.location))
            return
        narrow = ConcatOp.make([concat.parts[index] for index in chosen], axis=axis, location=concat.location)
        rewriter.replace(op, [narrow, SliceOp.make(narrow, **bounds(ranges), location=op.location)])


class SliceOfPad(RewritePattern):
    """Replace a slice of a pad that takes nothing of the border by a slice of the input."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter, /) -> None:
        pad = op.input.owner
        if not isinstance(pad, PadOp) or not size_of(op.result):
            return
        ranges: list[range] = []
        for taken, (before, _), size in zip(op.ranges(), pad.widths(), shape_of(pad.input), strict=True):
            if min(taken) < before or max(taken) >= before + size:
                return
            ranges.append(range(taken.start - before, max(taken.stop - before, -1), taken.step))
        rewriter.replace(op, SliceOp.make(pad.input, **bounds(ranges), location=op.location))


class ConcatOfEmpty(RewritePattern):
    """Drop operands without elements."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /) -> None:
        parts = [part for part in op.parts if not is_empty(part)]
        if parts and len(parts) < len(op.parts):
            rewriter.replace(op, ConcatOp.make(parts, axis=integer(op.axis), location=op.location))


class ConcatOfConcat(RewritePattern):
    """
    Replace operands that are concatenations along the same axis, and have no other use, by their operands.

    The outermost concatenation absorbs all others at once, so that a chain of them is rewritten once.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /) -> None:
        axis = concat_axis(op)
        if op.result.has_one_use() and _is_along(next(iter(op.result.uses)).operation, axis):
            return
        parts: list[SSAValue] = []
        pending = list(reversed(op.parts))
        while pending:
            part = pending.pop()
            inner = part.owner
            if isinstance(inner, ConcatOp) and _is_along(inner, axis) and part.has_one_use():
                pending += reversed(inner.parts)
            else:
                parts.append(part)
        if parts != list(op.parts):
            rewriter.replace(op, ConcatOp.make(parts, axis=axis, location=op.location))


def _is_along(op: Operation, axis: int) -> bool:
    """Whether `op` is a concatenation along `axis`."""
    return isinstance(op, ConcatOp) and concat_axis(op) == axis


class ConcatOfNeighbours(RewritePattern):
    """
    Merge adjacent operands that are consecutive slices of one tensor, and adjacent splats of one number.

    If they are all of the tensor, the result is the tensor (Glow's EliminateSliceConcat, OptimizeConcatNodes).
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /) -> None:
        axis = concat_axis(op)
        runs: list[list[SSAValue]] = []
        for part in op.parts:
            if runs and _continues(runs[-1][-1], part, axis):
                runs[-1].append(part)
            else:
                runs.append([part])
        if len(runs) == len(op.parts):
            return
        joined = [_joined(run, axis) if len(run) > 1 else None for run in runs]
        parts = [run[0] if new is None else new.results[0] for run, new in zip(runs, joined, strict=True)]
        concat = ConcatOp.make(parts, axis=axis, location=op.location)
        rewriter.replace(op, [*(new for new in joined if new is not None), concat])


def _continues(left: SSAValue, right: SSAValue, axis: int) -> bool:
    """Whether `right` is the slice that follows `left` along `axis` in one tensor, or a splat of the same number."""
    one, other = left.owner, right.owner
    if isinstance(one, SplatOp) and isinstance(other, SplatOp):
        return one.value == other.value
    if not isinstance(one, SliceOp) or not isinstance(other, SliceOp) or one.input is not other.input:
        return False
    if not size_of(left) or not size_of(right):
        return False
    pairs = list(zip(one.ranges(), other.ranges(), strict=True))
    same = all(before == after for position, (before, after) in enumerate(pairs) if position != axis)
    before, after = pairs[axis]
    return same and before.step == after.step == 1 and before.stop == after.start


def _joined(run: Sequence[SSAValue], axis: int) -> Operation:
    """The operation whose result replaces a run of operands."""
    first, last = run[0].owner, run[-1].owner
    if isinstance(first, SliceOp) and isinstance(last, SliceOp):
        ranges = list(first.ranges())
        ranges[axis] = range(ranges[axis].start, last.ranges()[axis].stop)
        return SliceOp.make(first.input, **bounds(ranges), location=first.location)
    assert isinstance(first, SplatOp)
    shape = list(shape_of(run[0]))
    shape[axis] = sum(shape_of(part)[axis] for part in run)
    return SplatOp.make(value=first.value, shape=shape, location=first.location)


class PadOfPad(RewritePattern):
    """Merge two pads with the same number, or with the nearest element."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if not isinstance(inner, PadOp):
            return
        fills = [(splat_number(pad.value) if pad.value is not None else 0, text(pad.mode)) for pad in (op, inner)]
        if fills[0] == fills[1] and fills[0][0] is not None and fills[0][1] in ("constant", "edge"):
            pads = [sum(pair) for pair in zip(ints(inner.pads), ints(op.pads), strict=True)]
            rewriter.replace(op, PadOp.make(inner.input, op.value, pads=pads, mode=op.mode, location=op.location))


class GatherOfOne(RewritePattern):
    """A gather with one known index is a slice."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter, /) -> None:
        index = splat_number(op.indices)
        if index is None or size_of(op.indices) != 1:
            return
        shape = shape_of(op.input)
        axis = normalize_axis(integer(op.axis), len(shape))
        start = int(index) + (shape[axis] if index < 0 else 0)
        if not 0 <= start < shape[axis]:  # It fails when it is executed.
            return
        ranges = [range(start, start + 1) if position == axis else range(size) for position, size in enumerate(shape)]
        part = SliceOp.make(op.input, **bounds(ranges), location=op.location)
        rewriter.replace(op, [part, ReshapeOp.make(part, shape=shape_of(op.result), location=op.location)])


PATTERNS: Mapping[type[HighOp], tuple[RewritePattern, ...]] = {
    ConcatOp: (ConcatOfEmpty(), ConcatOfConcat(), ConcatOfNeighbours()),
    GatherOp: (GatherOfOne(),),
    PadOp: (PadOfPad(),),
    SliceOp: (SliceOfSlice(), SliceOfConcat(), SliceOfPad()),
}
"""Operator → its patterns, besides those of `data_movement`."""
