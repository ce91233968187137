"""Kernels whose results have as many elements as their operands say, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp, NonZeroOp, UniqueOp

GENERATOR = np.random.default_rng(0)


def test_places():
    x = np.where(GENERATOR.random((3, 4, 5)) < 0.5, 0, sample((3, 4, 5))).astype(np.float32)
    x[0, 0, 0] = np.nan
    elements = [Case(NonZeroOp, x.astype(dtype)) for dtype in ("f4", "f2", "f8")]
    whole = [Case(NonZeroOp, array) for array in ((x > 1).astype("i1"), x > 0, np.zeros((0, 3), np.float32))]
    check_all([*elements, *whole])


@pytest.mark.parametrize("is_sorted", [True, False])
def test_unique_rows(is_sorted: bool):
    arrays = [
        GENERATOR.integers(0, 5 if columns == 1 else 2, (rows, columns)).astype(dtype)
        for dtype in ("f4", "i4", "u1", "?", "f2")
        for rows, columns in ((17, 1), (9, 2))
    ]
    spoiled = sample((6, 1))
    spoiled[[1, 4]] = np.nan
    spoiled[2] = spoiled[0]
    few = [np.zeros((rows, 1), np.int64) for rows in (0, 1)]
    check_all([Case(UniqueOp, array, sorted=is_sorted) for array in (*arrays, spoiled, *few)])


@pytest.mark.parametrize("target", runnable_targets())
def test_boxes(target: str):
    boxes = GENERATOR.uniform(0, 4, (2, 37, 4)).astype(np.float32)
    scores = GENERATOR.random((2, 3, 37)).round(1).astype(np.float32)
    scores[0, 0, :5] = -np.inf
    scores[0, 1] = np.nan
    five, share = np.array([5]), np.array([0.3], np.float32)
    check_all(
        [
            Case(NonMaxSuppressionOp, boxes, scores, five, share, share, limit=20, center_point_box=True),
            Case(NonMaxSuppressionOp, boxes, scores, np.array(50), None, None, limit=37),
            Case(NonMaxSuppressionOp, boxes, scores, np.array(-1), None, None, limit=37),
            Case(NonMaxSuppressionOp, boxes, scores, limit=3),
        ],
        target,
    )
