"""
Along which axes operators compute each index by itself, and how the samples of a batch lie along an axis.

`HighOp.independent_axes` says the former, operator by operator: what holds whatever the operands are, so that a part of
them gives that part of the results, as `data-parallel` partitions need it. (`samples` are what may be of one sample.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from glow_mlir.dialects.shapes import Shape, rank_of

if TYPE_CHECKING:
    from glow_mlir.dialects.glow_high.base import HighOp


class IndependentAxis(NamedTuple):
    """
    An axis along which an operator computes each index by itself: which axis it is of each operand and each result.

    `None` is an operand that is read whole. Of an operand that broadcasts the axis may have size one.
    """

    operands: tuple[int | None, ...]
    results: tuple[int, ...]


class Runs(NamedTuple):
    """
    How the samples of a batch lie along an axis: `outer` times all samples, one after the other, each of them `inner`
    elements.
    """

    axis: int
    outer: int = 1
    inner: int = 1

    def size(self, samples: int) -> int:
        """The size of the axis for so many samples."""
        return self.outer * samples * self.inner


def named_axis(op: HighOp, results: int | Sequence[int], **operands: int | None) -> IndependentAxis:
    """
    An axis of all results of an operator, or one of each; the operands of these names that there are have it where they
    say, the others, and those for which that is below zero, are read whole.
    """
    axes = (results,) * len(op.results) if isinstance(results, int) else tuple(results)
    places = [operands.get(name) for name, group in op.operand_groups() for value in group if value is not None]
    return IndependentAxis(tuple(None if place is None or place < 0 else place for place in places), axes)


def aligned_axes(op: HighOp, axes: Iterable[int]) -> list[IndependentAxis]:
    """Axes of the results that operands have at the same distance from the last one, where they have as many."""
    rank = rank_of(op.results[0])
    missing = [rank - rank_of(value) for value in op.operands]
    return [
        IndependentAxis(tuple(axis - own if axis >= own else None for own in missing), (axis,) * len(op.results))
        for axis in axes
    ]


def other_axes(op: HighOp, *axes: int) -> list[IndependentAxis]:
    """All axes of the results but some, counted from the front; operands have them at the same place."""
    return aligned_axes(op, (axis for axis in range(rank_of(op.results[0])) if axis not in axes))


def reshaped_runs(runs: Runs, given: Shape, shape: Shape, batch: int) -> Runs | None:
    """How samples lie in the same elements under another shape; `None` where an axis has parts of them."""
    before, done = math.prod(given[: runs.axis]) * runs.outer, 1
    for axis, size in enumerate(() if 0 in shape else shape):
        if before % done == 0 and done * size % (before * batch) == 0:
            return Runs(axis, before // done, done * size // (before * batch))
        done *= size
    return None
