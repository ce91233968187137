"""
Along which axes operators compute each index by itself, and how the samples of a batch lie along an axis.

Access maps say the former: what holds whatever the operands are, so that a part of them gives that part of the results,
as `data-parallel` partitions need it. (`samples` are what may be of one sample.)
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
    An axis along which an operator computes each index by itself: which axis it is of each operand and each result.

    `None` is an operand that is read whole. Of an operand that broadcasts the axis may have size one.
    """

    operands: tuple[int | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class ParallelAxes:
    """
    The leading axes of the results along which an operator computes each index by itself.

    `operands` has for each operand that depends on the index, by name, which of its axes each of them is, `None` for
    one that does not move it. Of an operand that broadcasts such an axis has size one. Other operands are read whole.
    """

    count: int = 0
    operands: Mapping[str, Sequence[int | None]] = field(default_factory=dict[str, "Sequence[int | None]"])


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


def reshaped_runs(runs: Runs, given: Shape, shape: Shape, batch: int) -> Runs | None:
    """How samples lie in the same elements under another shape; `None` where an axis has parts of them."""
    before, done = math.prod(given[: runs.axis]) * runs.outer, 1
    for axis, size in enumerate(() if 0 in shape else shape):
        if before % done == 0 and done * size % (before * batch) == 0:
            return Runs(axis, before // done, done * size // (before * batch))
        done *= size
    return None
