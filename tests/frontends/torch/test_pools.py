"""PyTorch's pools: windows that reach over borders, divisors, windows that lie as evenly as they can, and gradients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from traced_operators import computed

BACKENDS = pytest.mark.parametrize("backend", ["interpreter", "cpu"])
IMAGE = np.random.default_rng(0).permutation(2 * 3 * 5 * 7).reshape(2, 3, 5, 7).astype(np.float32)


def places(size: int, windows: int) -> list[tuple[int, int]]:
    """Where each of so many windows of an axis begins and ends, by PyTorch's rule."""
    return [(number * size // windows, -(-(number + 1) * size // windows)) for number in range(windows)]


def evenly(x: np.ndarray, rows: int, columns: int) -> dict[tuple[int, int], tuple[slice, slice]]:
    """The windows of an image that lie as evenly as they can, by their places."""
    along = (enumerate(places(size, count)) for size, count in zip(x.shape[2:], (rows, columns), strict=True))
    return {(i, j): (slice(*one), slice(*other)) for (i, one), (j, other) in product(*map(list, along))}


@BACKENDS
def test_indices_count_within_each_channel(backend: str) -> None:
    """The largest elements of windows, whose places start from 0 in each channel of each image."""
    rows, columns = range(0, 5, 2), range(0, 7, 2)
    values, indices = np.zeros((2, 3, 3, 4), np.float32), np.zeros((2, 3, 3, 4), np.int64)
    for (i, row), (j, column) in product(enumerate(rows), enumerate(columns)):
        window = np.full((2, 3, 5, 7), -np.inf)
        part = (..., slice(row, row + 2), slice(column, column + 2))
        window[part] = IMAGE[part]
        values[..., i, j], indices[..., i, j] = window.max((2, 3)), window.reshape(2, 3, -1).argmax(-1)
    arguments = (IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], True)
    found = computed("aten.max_pool2d_with_indices.default", arguments, [values, indices], backend=backend)
    for one, other in zip(found, (values, indices), strict=True):
        np.testing.assert_array_equal(one, other)
    gradient = np.ones_like(values)
    expected = np.zeros((6, 35), np.float32)
    np.add.at(expected, (np.arange(6)[:, None], indices.reshape(6, -1)), 1)
    backward = "aten.max_pool2d_with_indices_backward.default"
    (found,) = computed(backward, (gradient, *arguments, indices), [expected.reshape(IMAGE.shape)], backend=backend)
    np.testing.assert_array_equal(found, expected.reshape(IMAGE.shape))


@BACKENDS
@pytest.mark.parametrize(("divisor", "counts_padding"), [(None, True), (None, False), (3, True)])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_means_of_windows_over_the_border(dtype: str, divisor: int | None, counts_padding: bool, backend: str) -> None:
    """The last window is cut, and counts what lies within the padding at most."""
    x = IMAGE.astype(dtype)
    expected: np.ndarray = np.zeros((2, 3, 3, 4), dtype)
    for i, j in product(range(3), range(4)):
        (top, left), (bottom, right) = (2 * i - 1, 2 * j - 1), (min(2 * i + 2, 6), min(2 * j + 2, 8))
        inside = x[..., max(top, 0) : min(bottom, 5), max(left, 0) : min(right, 7)]
        count = (bottom - top) * (right - left) if counts_padding else inside.shape[2] * inside.shape[3]
        total, count = inside.sum((2, 3)), divisor or count
        expected[..., i, j] = total // count if dtype == "i8" else total / count
    arguments = (x, [3, 3], [2, 2], [1, 1], True, counts_padding, divisor)
    (found,) = computed("aten.avg_pool2d.default", arguments, [expected], backend=backend)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@BACKENDS
@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (1, 1), (2, 3), (7, 9)])
def test_windows_of_different_sizes(rows: int, columns: int, backend: str) -> None:
    """Means, largest elements and the gradient of means, as many as are asked for; infinities stay in their windows."""
    x = IMAGE.copy()
    x[0, 0, 0, 0] = np.inf
    means, peaks = (np.zeros((2, 3, rows, columns), np.float32) for _ in range(2))
    indices, shared = np.zeros((2, 3, rows, columns), np.int64), np.zeros_like(x)
    for (i, j), window in evenly(x, rows, columns).items():
        part = x[(..., *window)]
        means[..., i, j], peaks[..., i, j] = part.mean((2, 3)), part.max((2, 3))
        shared[(..., *window)] += 1 / (part.shape[2] * part.shape[3])
        hidden = np.full(x.shape, -np.inf)
        hidden[(..., *window)] = np.where(np.isinf(part), np.finfo(np.float32).max, part)
        indices[..., i, j] = hidden.reshape(2, 3, -1).argmax(-1)
    (found,) = computed("aten._adaptive_avg_pool2d.default", (x, [rows, columns]), [means], backend=backend)
    np.testing.assert_allclose(found, means, rtol=1e-6)
    operator, results = "aten.adaptive_max_pool2d.default", [peaks, indices]
    for one, other in zip(computed(operator, (x, [rows, columns]), results, backend=backend), results, strict=True):
        np.testing.assert_array_equal(one, other)
    backward = "aten._adaptive_avg_pool2d_backward.default"
    (found,) = computed(backward, (np.ones_like(means), x), [shared], backend=backend)
    np.testing.assert_allclose(found, shared, rtol=1e-5)
