"""Semantics of operators with data-dependent result sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp, NonZeroOp, UniqueOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import largest_shape
from glow_mlir.ir.registry import semantics


def _padded(op: HighOp, number: int, found: np.ndarray, axis: int = 0) -> np.ndarray:
    """Zero-pad the result `found` of an operator along an axis."""
    behind = largest_shape(op.outputs()[number])[axis] - found.shape[axis]
    return np.pad(found, [(0, behind if position == axis else 0) for position in range(found.ndim)])


@semantics(NonZeroOp)
def non_zero(op: NonZeroOp, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices of nonzero elements; NaN is nonzero."""
    positions = np.stack(np.nonzero(x))
    return _padded(op, 0, positions, axis=1), np.array(positions.shape[1])


def _key(row: list[Any]) -> tuple[tuple[bool, Any], ...]:
    """The sort key of a row: NaN follows all numbers."""
    return tuple((item != item, 0 if item != item else item) for item in row)


@semantics(UniqueOp)
def unique(op: UniqueOp, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Unique rows by their keys."""
    keys = [_key(row) for row in x.tolist()]
    first = {key: position for position, key in reversed(list(enumerate(keys)))}
    order = sorted(first, key=None if flag(op.sorted) else first.__getitem__)
    numbers = {key: number for number, key in enumerate(order)}
    indices = np.array([first[key] for key in order], np.int64)
    inverse = np.array([numbers[key] for key in keys], np.int64)
    occurrences = np.bincount(inverse, minlength=len(order))
    results = (x[indices], indices, inverse, occurrences)
    padded = (found if found is inverse else _padded(op, number, found) for number, found in enumerate(results))
    return (*padded, np.array(len(order)))


@semantics(NonMaxSuppressionOp)
def non_max_suppression(
    op: NonMaxSuppressionOp,
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray | None,
    iou_threshold: np.ndarray | None,
    score_threshold: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Select the best remaining box repeatedly; in f32."""
    limit = min(integer(op.limit), max(0 if most is None else int(most.item()), 0))
    largest = np.float32(0 if iou_threshold is None else iou_threshold.item())
    found: list[tuple[int, int, int]] = []
    for batch, classes in enumerate(scores):
        corners = _corners(boxes[batch], flag(op.center_point_box))
        for number, row in enumerate(classes):
            left = np.where(np.isnan(row), False, True if score_threshold is None else row > score_threshold.item())
            for _ in range(limit):
                if not left.any():
                    break
                best = int(np.flatnonzero(left)[row[left].argmax()])
                found.append((batch, number, best))
                left[best] = False
                left &= ~_overlap(corners, best, largest)
    return _padded(op, 0, np.reshape(found, (-1, 3)).astype(np.int64)), np.array(len(found))


def _corners(boxes: np.ndarray, by_center: bool) -> np.ndarray:
    """[4, N]: the lowest x and y, then the highest ones."""
    if by_center:
        x, y, half_width, half_height = (*boxes.T[:2], *(boxes.T[2:] / np.float32(2)))
        return np.stack([x - half_width, y - half_height, x + half_width, y + half_height])
    (y1, x1, y2, x2) = boxes.T
    return np.stack([np.minimum(x1, x2), np.minimum(y1, y2), np.maximum(x1, x2), np.maximum(y1, y2)])


def _overlap(corners: np.ndarray, chosen: int, threshold: np.float32) -> np.ndarray:
    """Whether boxes overlap one box by more than a share of their union; empty boxes never do."""
    low = np.maximum(corners[:2], corners[:2, chosen, None])
    high = np.minimum(corners[2:], corners[2:, chosen, None])
    width, height = high - low
    areas = (corners[2] - corners[0]) * (corners[3] - corners[1])
    common = width * height
    union = areas + areas[chosen] - common
    some = (width > 0) & (height > 0) & (common > 0) & (areas > 0) & (union > 0)
    with np.errstate(all="ignore"):
        return some & (common / union > threshold)
