"""The kernel of sums of rows of tables, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import Case, check_all, runnable_targets, sample

from glow_mlir.dialects.glow_high.embedding import BOUNDS, SparseLengthsSumOp

INDICES = np.random.default_rng(0).integers(0, 9, 14)
LENGTHS = np.array([3, 0, 5, 2], np.int32)
WEIGHTS = sample((14,))
EDGES = np.array([0, 3, 3, 9])


def codes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of rows, their scales and their offsets."""
    rows = np.random.default_rng(1).integers(0, 256, (9, 70)).astype(np.uint8)
    return rows, np.abs(sample((9,))), sample((9,))


@pytest.mark.parametrize("target", runnable_targets())
def test_sums(target: str):
    rows, scales, offsets = codes()
    parts = np.stack([scales, offsets], 1).astype("<f4").view(np.uint8)
    fused = np.concatenate([rows, parts], 1)
    floats = [
        Case(SparseLengthsSumOp, sample((9, 70), dtype), INDICES, LENGTHS, weights)
        for dtype in ("f4", "f8", "f2")
        for weights in (None, WEIGHTS.astype(dtype))
    ]
    bounds = [Case(SparseLengthsSumOp, sample((9, 5)), INDICES, EDGES, WEIGHTS, bounds=kind) for kind in BOUNDS[1:]]
    check_all(
        [
            *floats,
            *bounds,
            Case(SparseLengthsSumOp, rows, INDICES, LENGTHS, WEIGHTS, scales, offsets),
            Case(SparseLengthsSumOp, rows, INDICES, LENGTHS, None, scales, offsets),
            Case(SparseLengthsSumOp, fused, INDICES, LENGTHS, WEIGHTS, fused=True),
            Case(SparseLengthsSumOp, sample((9, 5)), INDICES, np.zeros(0, np.int32)),
        ],
        target,
        tolerance=3e-3,
    )
