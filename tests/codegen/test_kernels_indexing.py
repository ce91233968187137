"""Kernels with indices, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import check, runnable_targets, sample

from glow_mlir.dialects.glow_high import indexing as ops


def indices(*shape: int, bound: int = 5, dtype: str = "i8", seed: int = 3) -> np.ndarray:
    """Random indices in [-`bound`, `bound`)."""
    return np.random.default_rng(seed).integers(-bound, bound, size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f2", "u1", "i8", "?"])
def test_gather(dtype: str):
    x = sample((5, 6, 17), dtype)
    for axis in range(3):
        bound = x.shape[axis]
        check(ops.GatherOp, x, indices(2, 3, bound=bound), axis=axis)
        check(ops.GatherOp, x, indices(dtype="i4", bound=bound), axis=axis)
        check(ops.GatherElementsOp, x, indices(4, 5, 6, bound=bound), axis=axis)
    check(ops.GatherNDOp, x, indices(3, 2))
    check(ops.GatherNDOp, x, indices(4, 3, dtype="i4"))
    check(ops.GatherNDOp, x, indices(5, 3, 1), batch_dims=1)


def test_gather_reaches_the_ends():
    check(ops.GatherOp, sample((5, 6)), np.array([-5, 4, -1, 0], np.int64), axis=0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str, dtype: str):
    for axis in (0, 1):
        check(
            *(ops.ScatterElementsOp, sample((5, 6), dtype), indices(4, 5), sample((4, 5), dtype)),
            axis=axis,
            reduction=reduction,
        )
    check(
        *(ops.ScatterNDOp, sample((5, 6, 7), dtype), indices(4, 1), sample((4, 6, 7), dtype)),
        reduction=reduction,
    )
    check(
        *(ops.ScatterNDOp, sample((5, 6), dtype), indices(4, 3, 2), sample((4, 3), dtype)),
        reduction=reduction,
    )


def test_scatter_of_truth_values():
    check(ops.ScatterNDOp, sample((5, 6), "?"), indices(4, 2), sample((4,), "?"))


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0), (2, 0), (0, 2)])
def test_reverse_sequence(batch: int, time: int):
    x = sample((4, 5, 16))
    check(ops.ReverseSequenceOp, x, indices(x.shape[batch], bound=9), batch_axis=batch, time_axis=time)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(ops.GatherOp, sample((9, 40)), indices(5), target=target)
    check(ops.ScatterNDOp, sample((9, 40)), indices(5, 1), sample((5, 40)), target=target)
