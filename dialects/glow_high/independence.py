"""
The axes along which operators compute indices independently, and the runs of a batch's samples along an axis.

Independent axes follow from access maps and hold for any operands: a part of the operands gives the same part of the
results, as `data-parallel` partitions require. (`samples` tells which elements may be of one sample.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from glow_mlir.dialects.shapes import Shape
from glow_mlir.support.dataclass import dataclass


class IndependentAxis(NamedTuple):
    """
    An axis along which indices are computed independently: its number in each operand and in each result.

    `None` is an operand that is read as a whole. In an operand that broadcasts, the axis may have size one.
    """

    operands: tuple[int | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class ParallelAxes:
    """
    The leading axes of the results along which an operator computes indices independently.

    `operands` has, by name, for each operand that depends on the index, the operand's axis for each of these axes, or
    `None` for an axis that does not move it. In an operand that broadcasts, such an axis has size one. Other operands
    are read as a whole.
    """

    count: int = 0
    operands: Mapping[str, Sequence[int | None]] = field(default_factory=dict[str, "Sequence[int | None]"])


class Runs(NamedTuple):
    """
    The runs of a batch's samples along an axis: `outer` repetitions of all samples in order, `inner` elements of each.
    """

    axis: int
    outer: int = 1
    inner: int = 1

    def size(self, samples: int) -> int:
        """The size of the axis for that number of samples."""
        return self.outer * samples * self.inner


def reshaped_runs(runs: Runs, given: Shape, shape: Shape, batch: int) -> Runs | None:
    """The runs of the same elements under another shape; `None` if an axis has only a part of a sample."""
    before, done = math.prod(given[: runs.axis]) * runs.outer, 1
    for axis, size in enumerate(() if 0 in shape else shape):
        if before % done == 0 and done * size % (before * batch) == 0:
            return Runs(axis, before // done, done * size // (before * batch))
        done *= size
    return None


def laid_along(
    along: IndependentAxis,
    layouts: Sequence[Runs | None],
    operands: Sequence[Shape],
    results: Sequence[Shape],
    batch: int,
) -> tuple[Runs | None, ...] | None:
    """
    The layouts of operands of these shapes if the samples lie along an independent axis; else `None`.

    `layouts` are those that are known of them. Others get one as well if they have an element for each sample.
    """
    (runs,) = {own._replace(axis=0) for own in layouts if own is not None}
    size = runs.size(batch)
    found: list[Runs | None] = []
    for shape, own, axis in zip(operands, layouts, along.operands, strict=True):
        extent = 1 if axis is None else shape[axis]
        if extent not in (1, size) or (own is not None and own.axis != axis):
            return None
        found.append(runs._replace(axis=axis) if axis is not None and extent == size else None)
    fits = all(len(shape) > axis and shape[axis] == size for shape, axis in zip(results, along.results, strict=True))
    return tuple(found) if fits else None
