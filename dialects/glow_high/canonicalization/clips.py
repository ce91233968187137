"""
Merge operators that limit elements to a range: ReLU, clip, maximum and minimum with a number.

All of them keep NaN. The sign of a zero between two limits is unspecified, since `max` may return either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp, MaxOp, MinOp
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.support.dataclass import dataclass

Number = int | float

Limiting = ReluOp | ClipOp | MaxOp | MinOp
"""Operators that may limit elements to a range."""


@dataclass(frozen=True)
class Limits:
    """`input` limited to [`low`, `high`], where low ≤ high; absent limits are infinite."""

    input: SSAValue
    low: Number
    high: Number

    def limited(self, number: Number) -> Number:
        """`number` within the limits."""
        return min(max(number, self.low), self.high)

    def after(self, inner: Limits) -> Limits:
        """The limits `inner` followed by these. If the ranges are disjoint, the result is a single number, or NaN."""
        return Limits(inner.input, self.limited(inner.low), self.limited(inner.high))


def limits_of(op: Operation) -> Limits | None:
    """The limits of `op` if it limits elements to a known range and keeps the shape; otherwise `None`."""
    if isinstance(op, ReluOp):
        return Limits(op.input, 0, math.inf)
    if isinstance(op, ClipOp):
        return _known(op, op.input, op.low, op.high)
    if isinstance(op, MaxOp | MinOp):
        data, limit = (op.right, op.left) if isinstance(op.left.owner, SplatOp) else (op.left, op.right)
        return _known(op, data, limit, None) if isinstance(op, MaxOp) else _known(op, data, None, limit)
    return None


def _known(op: Elementwise, data: SSAValue, low: SSAValue | None, high: SSAValue | None) -> Limits | None:
    lower = -math.inf if low is None else splat_number(low)
    upper = math.inf if high is None else splat_number(high)
    if lower is None or upper is None or math.isnan(lower) or math.isnan(upper) or op.result.type != data.type:
        return None
    return Limits(data, min(lower, upper), upper)  # The upper limit wins where they cross.


class MergeLimits(RewritePattern):
    """
    Merge two consecutive limits into one, remove an unlimited one, and make one to [0, ∞) a ReLU.

    An operator whose result has other uses stays, so that it can still be fused with its producer.

    Glow's OptimizeClips, FoldMinMaxToClip, and in part RemoveIdentityRelu and RemoveIdentityClip.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        limits = limits_of(op)
        if limits is None:
            return
        inner = limits_of(limits.input.owner) if isinstance(limits.input.owner, Operation) else None
        merged = limits if inner is None else limits.after(inner)
        if inner is not None and merged == inner:
            rewriter.replace(op, [], [limits.input])
        elif (limits.low, limits.high) == (-math.inf, math.inf):
            rewriter.replace(op, [], [limits.input])
        elif inner is not None and limits.input.has_one_use():
            rewriter.replace(op, _limited(op, merged))
        elif not _is_simple(op, limits):
            rewriter.replace(op, _limited(op, limits))


def _is_simple(op: Operation, limits: Limits) -> bool:
    """Whether `op` is the simplest operator for its limits."""
    if isinstance(op, ReluOp):
        return True
    if not isinstance(op, ClipOp) or (limits.low, limits.high) == (0, math.inf):
        return False
    numbers = (None if op.low is None else splat_number(op.low), None if op.high is None else splat_number(op.high))
    return numbers == _finite(limits)


def _finite(limits: Limits) -> tuple[Number | None, Number | None]:
    """Both limits, an infinite one as `None`."""
    return (None if limits.low == -math.inf else limits.low, None if limits.high == math.inf else limits.high)


def _limited(op: Operation, limits: Limits) -> list[Operation]:
    """New operators for these limits, with the location of `op`; the last one has the result."""
    if (limits.low, limits.high) == (0, math.inf):
        return [ReluOp.make(limits.input, location=op.location)]
    element = element_of(limits.input)
    splats = [
        None if number is None else SplatOp.make(value=_attribute(number, element), shape=(), location=op.location)
        for number in _finite(limits)
    ]
    clip = ClipOp.make(limits.input, *splats, location=op.location)
    return [*(splat for splat in splats if splat is not None), clip]


def _attribute(number: Number, element: Attribute) -> Attribute:
    if is_float(element):
        return FloatAttr(float(number), element)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return IntegerAttr(int(number), element)  # pyright: ignore[reportArgumentType, reportCallIssue]


MERGE_LIMITS = MergeLimits()

PATTERNS: Mapping[type[Elementwise], tuple[RewritePattern, ...]] = dict.fromkeys(
    (ClipOp, MaxOp, MinOp, ReluOp), (MERGE_LIMITS,)
)
"""Operator → its patterns."""
