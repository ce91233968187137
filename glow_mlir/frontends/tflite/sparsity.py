"""
Sparse constants: their values in dense form.

The axes of a tensor, and of the blocks into which some of them are split, are levels of a tree, in the order of
traversal. A dense level has all indices below each node of the level above, and a sparse level has a list of them. The
leaves are the values that are stored (Kjolstad et al., 2017, "The Tensor Algebra Compiler").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.flatbuffer import Table

MAX_ELEMENTS = 1 << 28
"""The maximum number of elements that all sparse constants of a file have in dense form."""

_VECTORS = {1: "<i4", 2: "<u2", 3: "u1"}
"""Number of the type of a list of indices → its dtype."""

DENSE = 0
"""The number of the form of a dense level."""


@dataclass(frozen=True)
class _Level:
    """A level: the number of indices, if it is dense; otherwise where the list of each node begins, and the indices."""

    size: int
    segments: np.ndarray | None = None
    indices: np.ndarray | None = None


def densified(table: Table, values: np.ndarray, shape: Sequence[int], before: int = 0) -> np.ndarray:
    """
    The dense form of the stored `values`; sparse constants `before` it in the file have that many elements in theirs.

    Raises `ModelError` if the sparsity does not fit the values and the shape, and `UnsupportedError` beyond the limit.
    """
    if before + math.prod(shape) > MAX_ELEMENTS:
        reason = f"the sparse constants of the file have more than {MAX_ELEMENTS} elements in dense form"
        raise UnsupportedError(reason, hint="store them in dense form, which is mapped from the file")
    order = table.array(0, "<i4").tolist()
    blocks = table.array(1, "<i4").tolist()
    levels = [_level(item) for item in table.tables(2, "a level of a sparse tensor")]
    rank = len(shape)
    fits = sorted(order) == list(range(len(levels))) and len(levels) == rank + len(blocks)
    if not fits or any(not 0 <= axis < rank for axis in blocks):
        raise table.buffer.error(f"a sparse tensor of shape {list(shape)} has {len(levels)} levels")
    positions, indices = np.zeros(1, np.int64), list[np.ndarray]()
    for level in levels:
        parents, positions, own = _expanded(table, level, positions, math.prod(shape))
        indices = [*(item[parents] for item in indices), own]
    if len(positions) != len(values):
        raise table.buffer.error(f"a sparse tensor has {len(values)} values, and {len(positions)} indices")
    return _scattered(table, values, shape, _coordinates(order, blocks, levels, indices, rank))


def _level(table: Table) -> _Level:
    if table.number(0, "b") == DENSE:
        return _Level(table.number(1, "i"))
    lists: list[np.ndarray] = []
    for kind, field in ((2, 3), (4, 5)):
        found, number = table.table(field, "a list of a sparse tensor"), table.number(kind, "B")
        if found is None or number not in _VECTORS:
            raise table.buffer.error("a sparse level has no list of indices")
        lists.append(found.array(0, _VECTORS[number]).astype(np.int64))
    return _Level(0, *lists)


def _expanded(
    table: Table, level: _Level, positions: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each node of a level: the number of the node above, its own position, and its index."""
    if level.segments is None or level.indices is None:
        if level.size < 0 or len(positions) * level.size > most:
            raise table.buffer.error(f"a level of a sparse tensor has {level.size} indices")
        parents = np.repeat(np.arange(len(positions)), level.size)
        own = np.tile(np.arange(level.size), len(positions))
        return parents, positions[parents] * level.size + own, own
    segments = level.segments
    is_long = len(segments) > int(positions.max(initial=0)) + 1
    if not is_long or (np.diff(segments) < 0).any() or segments[0] < 0 or segments[-1] > len(level.indices):
        raise table.buffer.error("the lists of a sparse level do not fit each other")
    first, last = segments[positions], segments[positions + 1]
    counts = last - first
    if counts.sum() > most:
        raise table.buffer.error("a sparse level has more indices than elements")
    parents = np.repeat(np.arange(len(positions)), counts)
    behind = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
    own = first[parents] + behind
    return parents, own, level.indices[own]


def _coordinates(
    order: Sequence[int], blocks: Sequence[int], levels: Sequence[_Level], indices: Sequence[np.ndarray], rank: int
) -> list[np.ndarray]:
    """The index of each value along each axis."""
    found = [np.zeros(0, np.int64)] * rank
    for number, own in zip(order, indices, strict=True):
        if number < rank:
            found[number] = own
    for number, own in zip(order, indices, strict=True):
        if number >= rank:
            axis = blocks[number - rank]
            found[axis] = found[axis] * levels[order.index(number)].size + own
    return found


def _scattered(table: Table, values: np.ndarray, shape: Sequence[int], coordinates: list[np.ndarray]) -> np.ndarray:
    """A tensor of zeros with the values at their coordinates."""
    if any(len(own) and not 0 <= own.min() <= own.max() < size for own, size in zip(coordinates, shape, strict=True)):
        raise table.buffer.error("an index of a sparse tensor is out of range")
    result = np.zeros(tuple(shape), values.dtype)
    result[tuple(coordinates)] = values
    return result
